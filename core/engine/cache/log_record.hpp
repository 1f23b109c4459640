#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "core/model/extent.hpp"

// docs/formats/write-behind-log.md

namespace forebay {

/// What one record of the write-behind log says.
enum class RecordKind : std::uint8_t {
  data = 1,       ///< The payload lies at `value` in the file.
  commit = 2,     ///< What the log holds before it is whole.
  flushed = 3,    ///< Records up to sequence `value` are durable in the file.
  truncate = 4,   ///< The file is about to be cut to `value` bytes: what is beyond is void.
  truncated = 5,  ///< The truncate record of sequence `value` was carried out, durably.
};

/// The header of a record. Sequence numbers count all records of one log, from 1; epochs are those
/// of the file, agreed by its ranks, and never decrease along a log.
struct LogRecord {
  RecordKind kind = RecordKind::data;
  std::uint64_t epoch = 0;
  std::uint64_t sequence = 0;
  std::uint64_t value = 0;          ///< See RecordKind.
  std::uint32_t length = 0;         ///< Bytes of payload; 0 unless data.
  std::uint32_t data_checksum = 0;  ///< CRC-32C of the payload; 0 unless data.

  /// The bytes of the file that a data record sets.
  Extent extent() const { return {static_cast<Bytes>(value), static_cast<Bytes>(length)}; }
  bool operator==(const LogRecord&) const = default;
};

constexpr Bytes record_header_bytes = 40;
/// A payload is cut at this many bytes. It is also what a reader needs memory for at most.
constexpr Bytes largest_payload = 16 * MiB;
/// Records start at multiples of this.
constexpr Bytes record_alignment = 8;

using RecordHeader = std::array<std::byte, static_cast<std::size_t>(record_header_bytes)>;

/// Zero bytes behind a payload of `length` bytes, up to where the next record starts.
constexpr Bytes record_padding(std::uint32_t length) {
  return (record_alignment - static_cast<Bytes>(length) % record_alignment) % record_alignment;
}

/// Bytes that a record with a payload of `length` bytes takes in the log.
constexpr Bytes record_bytes(std::uint32_t length) {
  return record_header_bytes + static_cast<Bytes>(length) + record_padding(length);
}

/// `salt` is that of the segment, so that what an earlier use of the segment left is no record.
RecordHeader encode_record(const LogRecord& record, std::uint32_t salt);

/// No value: no record, a damaged one, or one that encode_record() would not have written.
std::optional<LogRecord> decode_record(std::span<const std::byte> header, std::uint32_t salt);

}  // namespace forebay
