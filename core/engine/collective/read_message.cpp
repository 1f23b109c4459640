#include "core/engine/collective/read_message.hpp"

#include <fmt/format.h>

#include <cstdint>
#include <cstring>
#include <string>

#include "core/engine/collective/exchange_protocol.hpp"

namespace forebay {
namespace {

/// "FBRM" in the memory of a little-endian machine.
constexpr std::uint32_t magic = 0x4d524246;

/// In the byte order of the machine, as call records are.
struct Layout {
  std::uint32_t magic;
  std::uint32_t version;
  std::int64_t valid_until;
  std::int64_t plain_bytes;
};
static_assert(sizeof(Layout) == read_header_bytes);

tl::unexpected<Error> damaged(const std::string& problem) {
  return tl::unexpected(
      Error{ErrorKind::internal, 0, "message from the aggregator to readers: " + problem});
}

}  // namespace

void encode_read_header(const ReadMessageHeader& header, std::span<std::byte> message) {
  const Layout layout{.magic = magic,
                      .version = static_cast<std::uint32_t>(exchange_protocol_version),
                      .valid_until = header.valid_until,
                      .plain_bytes = header.plain_bytes};
  std::memcpy(message.first(read_header_bytes).data(), &layout, sizeof layout);
}

Result<ReadMessageHeader> decode_read_header(std::span<const std::byte> message, Bytes room) {
  const Bytes pieces = static_cast<Bytes>(message.size()) - read_header_bytes;
  if (pieces < 0) return damaged("it is cut short");
  Layout layout;
  std::memcpy(&layout, message.data(), sizeof layout);
  if (layout.magic != magic) return damaged("it has no header");
  if (layout.version != exchange_protocol_version) {
    return damaged(fmt::format("it is of version {}, not {}: all ranks must run the same Forebay",
                               layout.version, exchange_protocol_version));
  }
  if (layout.valid_until < 0) return damaged("the end of the file is before its beginning");
  if (layout.plain_bytes < pieces || layout.plain_bytes > room) {
    return damaged(fmt::format("{} bytes arrived for {}, and there is room for {}", pieces,
                               layout.plain_bytes, room));
  }
  return ReadMessageHeader{layout.valid_until, layout.plain_bytes};
}

}  // namespace forebay
