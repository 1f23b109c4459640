#include "core/engine/collective/claims_message.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/engine/cache/crc32c.hpp"
#include "core/engine/cache/little_endian.hpp"

namespace forebay {
namespace {

constexpr std::uint32_t claims_magic = 0x4c434246;  // "FBCL"
constexpr std::uint16_t claims_version = 1;

// Offsets.
constexpr std::size_t at_magic = 0;
constexpr std::size_t at_version = 4;
constexpr std::size_t at_kind = 6;
constexpr std::size_t at_yes = 7;
constexpr std::size_t at_number = 8;
constexpr std::size_t at_rank = 16;
constexpr std::size_t at_flags = 20;
constexpr std::size_t at_wish = 24;
constexpr std::size_t at_count = 28;
constexpr std::size_t at_extent = 32;  ///< Or the token.
constexpr std::size_t at_epoch = 48;
constexpr std::size_t at_error = 56;
constexpr std::size_t at_errno = 60;
constexpr std::size_t at_reserved = 64;
constexpr std::size_t at_checksum = 68;
static_assert(at_checksum + sizeof(std::uint32_t) == claims_message_bytes);

tl::unexpected<Error> refused_message(ErrorKind kind, const std::string& what) {
  return tl::unexpected(Error{kind, 0, "message about claims: " + what});
}

}  // namespace

ClaimsMessageWire encode_claims_message(const ClaimsMessage& message) {
  ClaimsMessageWire wire{};
  const std::span<std::byte> to(wire);
  store_little_endian(to, at_magic, claims_magic);
  store_little_endian(to, at_version, claims_version);
  store_little_endian(to, at_kind, static_cast<std::uint8_t>(message.kind));
  store_little_endian(to, at_yes, static_cast<std::uint8_t>(message.yes ? 1 : 0));
  store_little_endian(to, at_number, message.number);
  store_little_endian(to, at_rank, static_cast<std::uint32_t>(message.rank));
  store_little_endian(to, at_flags, message.flags);
  store_little_endian(to, at_wish, static_cast<std::uint32_t>(message.wish));
  store_little_endian(to, at_count, message.count);
  if (message.kind == ClaimsMessage::Kind::greeting) {
    std::ranges::copy(message.token, to.subspan(at_extent).begin());
  } else {
    store_little_endian(to, at_extent, static_cast<std::uint64_t>(message.extent.offset));
    store_little_endian(to, at_extent + 8, static_cast<std::uint64_t>(message.extent.length));
  }
  store_little_endian(to, at_epoch, message.epoch);
  store_little_endian(to, at_error, static_cast<std::uint32_t>(message.error));
  store_little_endian(to, at_errno, static_cast<std::uint32_t>(message.os_errno));
  store_little_endian(to, at_checksum, crc32c(to.first(at_checksum)));
  return wire;
}

Result<ClaimsMessage> decode_claims_message(std::span<const std::byte, claims_message_bytes> wire) {
  if (load_little_endian<std::uint32_t>(wire, at_magic) != claims_magic) {
    return refused_message(ErrorKind::io, "it is none");
  }
  if (const auto found = load_little_endian<std::uint16_t>(wire, at_version);
      found != claims_version) {
    return refused_message(ErrorKind::unsupported,
                           fmt::format("it is of version {}, not {}", found, claims_version));
  }
  if (load_little_endian<std::uint32_t>(wire, at_checksum) != crc32c(wire.first(at_checksum))) {
    return refused_message(ErrorKind::io, "its checksum is wrong");
  }
  const auto kind = load_little_endian<std::uint8_t>(wire, at_kind);
  const auto yes = load_little_endian<std::uint8_t>(wire, at_yes);
  const auto wish = load_little_endian<std::uint32_t>(wire, at_wish);
  const auto error = load_little_endian<std::uint32_t>(wire, at_error);
  if (kind == 0 || kind > static_cast<std::uint8_t>(ClaimsMessage::last_kind) || yes > 1 ||
      wish > static_cast<std::uint32_t>(Claims::Wish::write_through) ||
      error > static_cast<std::uint32_t>(ErrorKind::internal) ||
      load_little_endian<std::uint32_t>(wire, at_reserved) != 0) {
    return refused_message(ErrorKind::io, "it has a field of no known value");
  }
  ClaimsMessage message{
      .kind = static_cast<ClaimsMessage::Kind>(kind),
      .yes = yes != 0,
      .number = load_little_endian<std::uint64_t>(wire, at_number),
      .rank = static_cast<int>(load_little_endian<std::uint32_t>(wire, at_rank)),
      .flags = load_little_endian<std::uint32_t>(wire, at_flags),
      .wish = static_cast<Claims::Wish>(wish),
      .count = load_little_endian<std::uint32_t>(wire, at_count),
      .epoch = load_little_endian<std::uint64_t>(wire, at_epoch),
      .error = static_cast<ErrorKind>(error),
      .os_errno = static_cast<int>(load_little_endian<std::uint32_t>(wire, at_errno)),
  };
  if (message.kind == ClaimsMessage::Kind::greeting) {
    std::ranges::copy(wire.subspan(at_extent, message.token.size()), message.token.begin());
  } else {
    message.extent = {static_cast<Bytes>(load_little_endian<std::uint64_t>(wire, at_extent)),
                      static_cast<Bytes>(load_little_endian<std::uint64_t>(wire, at_extent + 8))};
    Bytes end = 0;
    if (message.extent.offset < 0 || message.extent.length < 0 ||
        __builtin_add_overflow(message.extent.offset, message.extent.length, &end)) {
      return refused_message(ErrorKind::io, "its extent is impossible");
    }
  }
  if (message.rank < 0) return refused_message(ErrorKind::io, "its rank is impossible");
  return message;
}

}  // namespace forebay
