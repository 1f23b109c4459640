#include "core/engine/cache/log_record.hpp"

#include <cassert>
#include <limits>

#include "core/engine/cache/crc32c.hpp"
#include "core/engine/cache/little_endian.hpp"

namespace forebay {
namespace {

constexpr std::array<std::byte, 3> magic = {std::byte{'F'}, std::byte{'B'}, std::byte{'R'}};

// Where the fields lie. The checksum of the header covers all but itself.
constexpr std::size_t kind_at = 3;
constexpr std::size_t header_checksum_at = 4;
constexpr std::size_t data_checksum_at = 8;
constexpr std::size_t length_at = 12;
constexpr std::size_t epoch_at = 16;
constexpr std::size_t sequence_at = 24;
constexpr std::size_t value_at = 32;
constexpr std::size_t stored_at = 40;
constexpr std::size_t codec_at = 44;  ///< Three bytes of zeros follow it.

std::uint32_t header_checksum(std::span<const std::byte> header, std::uint32_t salt) {
  return crc32c(header.subspan(data_checksum_at), crc32c(header.first(header_checksum_at), salt));
}

bool payload_sensible(const LogRecord& record) {
  if (record.length == 0 || record.length > largest_payload || record.stored == 0) return false;
  switch (record.codec) {
    case PayloadCodec::none:
      return record.stored == record.length;
    case PayloadCodec::lz4:
      return record.stored < record.length;
  }
  return false;
}

bool no_payload(const LogRecord& record) {
  return record.length == 0 && record.stored == 0 && record.codec == PayloadCodec::none &&
         record.data_checksum == 0;
}

bool sensible(const LogRecord& record) {
  constexpr auto most = static_cast<std::uint64_t>(std::numeric_limits<Bytes>::max());
  if (record.sequence == 0) return false;
  switch (record.kind) {
    case RecordKind::data:
      return payload_sensible(record) && record.value <= most - record.length;
    case RecordKind::commit:
      return no_payload(record) && record.value == 0;
    case RecordKind::flushed:
    case RecordKind::truncated:
      return no_payload(record) && record.value < record.sequence;
    case RecordKind::truncate:
      return no_payload(record) && record.value <= most;
  }
  return false;
}

}  // namespace

RecordHeader encode_record(const LogRecord& record, std::uint32_t salt) {
  assert(sensible(record));
  RecordHeader header{};
  for (std::size_t i = 0; i < magic.size(); ++i) header[i] = magic[i];
  header[kind_at] = static_cast<std::byte>(record.kind);
  store_little_endian(header, data_checksum_at, record.data_checksum);
  store_little_endian(header, length_at, record.length);
  store_little_endian(header, epoch_at, record.epoch);
  store_little_endian(header, sequence_at, record.sequence);
  store_little_endian(header, value_at, record.value);
  store_little_endian(header, stored_at, record.stored);
  header[codec_at] = static_cast<std::byte>(record.codec);
  store_little_endian(header, header_checksum_at, header_checksum(header, salt));
  return header;
}

std::optional<LogRecord> decode_record(std::span<const std::byte> header, std::uint32_t salt) {
  if (header.size() < static_cast<std::size_t>(record_header_bytes)) return {};
  header = header.first(static_cast<std::size_t>(record_header_bytes));
  for (std::size_t i = 0; i < magic.size(); ++i) {
    if (header[i] != magic[i]) return {};
  }
  if (load_little_endian<std::uint32_t>(header, header_checksum_at) !=
      header_checksum(header, salt)) {
    return {};
  }
  const LogRecord record{
      .kind = static_cast<RecordKind>(header[kind_at]),
      .epoch = load_little_endian<std::uint64_t>(header, epoch_at),
      .sequence = load_little_endian<std::uint64_t>(header, sequence_at),
      .value = load_little_endian<std::uint64_t>(header, value_at),
      .length = load_little_endian<std::uint32_t>(header, length_at),
      .stored = load_little_endian<std::uint32_t>(header, stored_at),
      .codec = static_cast<PayloadCodec>(header[codec_at]),
      .data_checksum = load_little_endian<std::uint32_t>(header, data_checksum_at),
  };
  if (!sensible(record)) return {};
  return record;
}

}  // namespace forebay
