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
  data = 1,     ///< The payload lies at `value` in the file.
  commit = 2,   ///< What the log holds before it is whole.
  flushed = 3,  ///< Records up to sequence `value` are durable in the file.
  // Earlier versions wrote these: now a log is empty when its file is cut.
  truncate = 4,   ///< The file is about to be cut to `value` bytes: what is beyond is void.
  truncated = 5,  ///< The truncate record of sequence `value` was carried out, durably.
};

/// How a payload lies in the log.
enum class PayloadCodec : std::uint8_t {
  none = 0,  ///< As it is.
  lz4 = 1,   ///< One lz4 block.
};

/// The header of a record. Sequence numbers count all records of one log, from 1; epochs are those
/// of the file, agreed by its ranks, and never decrease along a log.
struct LogRecord {
  RecordKind kind = RecordKind::data;
  std::uint64_t epoch = 0;
  std::uint64_t sequence = 0;
  std::uint64_t value = 0;   ///< See RecordKind.
  std::uint32_t length = 0;  ///< Bytes of the file that the payload is; 0 unless data.
  std::uint32_t stored = 0;  ///< Bytes that it takes in the log: length, or less with a codec.
  PayloadCodec codec = PayloadCodec::none;
  std::uint32_t data_checksum = 0;  ///< CRC-32C of what is stored; 0 unless data.

  /// The bytes of the file that a data record sets.
  Extent extent() const { return {static_cast<Bytes>(value), static_cast<Bytes>(length)}; }
  bool operator==(const LogRecord&) const = default;
};

constexpr Bytes record_header_bytes = 48;
/// A payload is cut at this many bytes. It is also what a reader needs memory for at most.
constexpr Bytes largest_payload = 16 * MiB;
/// Records start at multiples of this.
constexpr Bytes record_alignment = 8;

using RecordHeader = std::array<std::byte, static_cast<std::size_t>(record_header_bytes)>;

/// Zero bytes behind `stored` bytes of payload, up to where the next record starts.
constexpr Bytes record_padding(std::uint32_t stored) {
  return (record_alignment - static_cast<Bytes>(stored) % record_alignment) % record_alignment;
}

/// Bytes that a record takes in the log whose payload takes `stored` bytes there.
constexpr Bytes record_bytes(std::uint32_t stored) {
  return record_header_bytes + static_cast<Bytes>(stored) + record_padding(stored);
}

/// `salt` is that of the segment, so that what an earlier use of the segment left is no record.
RecordHeader encode_record(const LogRecord& record, std::uint32_t salt);

/// No value: no record, a damaged one, or one that encode_record() would not have written.
std::optional<LogRecord> decode_record(std::span<const std::byte> header, std::uint32_t salt);

}  // namespace forebay
