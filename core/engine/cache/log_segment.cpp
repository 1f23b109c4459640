#include "core/engine/cache/log_segment.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <string_view>
#include <utility>

#include "core/engine/cache/crc32c.hpp"

namespace forebay {
namespace {

constexpr std::string_view segment_prefix = "segment-";
constexpr std::size_t number_digits = 20;  ///< Of the largest 64-bit number.

}  // namespace

LogSegment::LogSegment(LogFile file, Superblock superblock)
    : file_(std::move(file)), superblock_(std::move(superblock)) {}

Result<std::span<const std::byte>> LogSegment::bytes(Bytes position, Bytes length,
                                                     std::vector<std::byte>& buffer) const {
  if (file_.memory != nullptr && position + length <= file_.memory_bytes) {
    return std::span(file_.memory.get() + position, static_cast<std::size_t>(length));
  }
  buffer.resize(static_cast<std::size_t>(length));
  const auto got = file_.storage->read_at(buffer, position);
  if (!got) return tl::unexpected(got.error());
  if (*got < length) {
    return tl::unexpected(Error{ErrorKind::io, 0,
                                fmt::format("{} ends at {}, before byte {}", file_.storage->path(),
                                            position + *got, position + length)});
  }
  return std::span<const std::byte>(buffer);
}

Result<std::span<const std::byte>> verified_bytes(const LogPlace& place, Bytes length,
                                                  std::vector<std::byte>& buffer) {
  const auto payload = place.segment->bytes(place.payload, place.length, buffer);
  if (!payload) return payload;
  if (crc32c(*payload) != place.checksum) {
    return tl::unexpected(
        Error{ErrorKind::io, 0,
              fmt::format("{} is damaged: the checksum of {} bytes at {} is wrong",
                          place.segment->storage().path(), place.length, place.payload)});
  }
  return payload->subspan(static_cast<std::size_t>(place.skip), static_cast<std::size_t>(length));
}

std::string segment_name(std::uint64_t number) {
  return fmt::format("{}{:0{}}", segment_prefix, number, number_digits);
}

bool is_segment_name(const std::string& name) {
  return name.starts_with(segment_prefix) && segment_name(segment_number(name)) == name;
}

std::uint64_t segment_number(const std::string& name) {
  std::uint64_t number = 0;
  const char* end = name.data() + name.size();
  std::from_chars(name.data() + std::min(segment_prefix.size(), name.size()), end, number);
  return number;
}

}  // namespace forebay
