#include "core/engine/cache/log_segment.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <cstring>
#include <string_view>
#include <utility>

#include "core/engine/cache/crc32c.hpp"
#include "core/engine/compression/adaptive_compressor.hpp"

namespace forebay {
namespace {

constexpr std::string_view segment_prefix = "segment-";
constexpr std::size_t number_digits = 20;  ///< Of the largest 64-bit number.

tl::unexpected<Error> ends_before(const LogSegment& segment, Bytes end, Bytes wanted) {
  return tl::unexpected(Error{
      ErrorKind::io, 0, fmt::format("{} ends at {}, before byte {}", segment.path(), end, wanted)});
}

Status verify(const LogPlace& place, std::span<const std::byte> payload) {
  if (crc32c(payload) == place.checksum) return {};
  return tl::unexpected(Error{ErrorKind::io, 0,
                              fmt::format("{} is damaged: the checksum of {} bytes at {} is wrong",
                                          place.segment->path(), place.stored, place.payload)});
}

Status expand_payload(const LogPlace& place, std::span<const std::byte> stored,
                      std::span<std::byte> to) {
  if (expand(stored, to)) return {};
  return tl::unexpected(
      Error{ErrorKind::io, 0,
            fmt::format("{} is damaged: {} bytes at {} do not expand to {}", place.segment->path(),
                        place.stored, place.payload, place.length)});
}

}  // namespace

LogSegment::LogSegment(LogFile file, Superblock superblock)
    : file_(std::move(file)), superblock_(std::move(superblock)) {}

std::string LogSegment::path() const {
  const std::string& made_as = file_.storage->path();
  return made_as.substr(0, made_as.rfind('/') + 1) + segment_name(superblock_.segment);
}

LogFile LogSegment::release(Bytes end) {
  const Bytes before = file_.earlier ? file_.earlier->filled : 0;
  file_.earlier = EarlierUse{superblock_.salt, std::max(before, end)};
  return std::move(file_);
}

Status LogSegment::write(std::span<const iovec> pieces, Bytes length, Bytes position) {
  const Bytes end = position + length;
  if (file_.memory == nullptr || !file_.earlier || end > file_.earlier->filled ||
      end > file_.memory_bytes) {
    return file_.storage->write_pieces(pieces, position);
  }
  std::byte* to = file_.memory.get() + position;
  for (const iovec& piece : pieces) {
    std::memcpy(to, piece.iov_base, piece.iov_len);
    to += piece.iov_len;
    // Where the process is killed, nothing of a record is there before those that precede it.
    std::atomic_signal_fence(std::memory_order_seq_cst);
  }
  return {};
}

bool LogSegment::in_memory(Bytes position, Bytes length) const {
  return file_.memory != nullptr && position + length <= file_.memory_bytes;
}

Result<std::span<const std::byte>> LogSegment::bytes(Bytes position, Bytes length,
                                                     std::vector<std::byte>& buffer) const {
  if (in_memory(position, length)) {
    return std::span(file_.memory.get() + position, static_cast<std::size_t>(length));
  }
  buffer.resize(static_cast<std::size_t>(length));
  const auto got = file_.storage->read_at(buffer, position);
  if (!got) return tl::unexpected(got.error());
  if (*got < length) return ends_before(*this, position + *got, position + length);
  return std::span<const std::byte>(buffer);
}

Result<std::span<const std::byte>> verified_bytes(const LogPlace& place, Bytes length,
                                                  std::vector<std::byte>& buffer) {
  std::vector<std::byte> compressed;
  const auto stored =
      place.segment->bytes(place.payload, place.stored, place.plain() ? buffer : compressed);
  if (!stored) return stored;
  if (auto right = verify(place, *stored); !right) return tl::unexpected(right.error());
  std::span<const std::byte> payload = *stored;
  if (!place.plain()) {
    buffer.resize(place.length);
    if (auto expanded = expand_payload(place, *stored, buffer); !expanded) {
      return tl::unexpected(expanded.error());
    }
    payload = buffer;
  }
  return payload.subspan(static_cast<std::size_t>(place.skip), static_cast<std::size_t>(length));
}

Status read_verified(const LogPlace& place, std::span<std::byte> to,
                     std::vector<std::byte>& payload) {
  const auto length = static_cast<Bytes>(to.size());
  const bool whole = place.skip == 0 && length == static_cast<Bytes>(place.length);
  if (whole && !place.plain()) {
    const auto stored = place.segment->bytes(place.payload, place.stored, payload);
    if (!stored) return tl::unexpected(stored.error());
    if (auto right = verify(place, *stored); !right) return right;
    return expand_payload(place, *stored, to);
  }
  if (whole) {
    const auto got = place.segment->storage().read_at(to, place.payload);
    if (!got) return tl::unexpected(got.error());
    if (*got < length)
      return ends_before(*place.segment, place.payload + *got, place.payload + length);
    return verify(place, to);
  }
  const auto bytes = verified_bytes(place, length, payload);
  if (!bytes) return tl::unexpected(bytes.error());
  std::memcpy(to.data(), bytes->data(), to.size());
  return {};
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

Result<bool> has_segments(LogStore& log) {
  return log.list().map(
      [](const auto& names) { return std::ranges::any_of(names, is_segment_name); });
}

}  // namespace forebay
