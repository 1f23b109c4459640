#include "core/engine/cache/segment_scan.hpp"

#include <algorithm>
#include <optional>
#include <string_view>

#include "core/engine/cache/crc32c.hpp"
#include "core/engine/compression/adaptive_compressor.hpp"

namespace forebay {
namespace {

constexpr Bytes search_bytes = 1 * MiB;
constexpr Bytes quick_search_bytes = 4 * MiB;

class Scan {
 public:
  Scan(const LogSegment& segment, Bytes end, ReadDepth depth, const ScanProgress& progress)
      : segment_(segment), end_(end), depth_(depth), progress_(progress) {}

  SegmentFindings run() {
    Bytes position = superblock_bytes;
    while (position + record_header_bytes <= end_) {
      if (auto record = record_at(position)) {
        position = note(*record, position);
        continue;
      }
      if (!findings_.readable) break;
      const Bytes next = next_record(position + record_alignment);
      if (next >= end_) break;
      findings_.strange_bytes += next - position;
      position = next;
    }
    report(end_);
    return std::move(findings_);
  }

 private:
  std::optional<LogRecord> record_at(Bytes position) {
    const auto header = segment_.bytes(position, record_header_bytes, header_);
    if (!header) {
      findings_.readable = tl::unexpected(header.error());
      return {};
    }
    return decode_record(*header, segment_.superblock().salt);
  }

  bool expands(const LogRecord& record, std::span<const std::byte> stored) {
    if (record.codec == PayloadCodec::none) return true;
    expanded_.resize(record.length);
    return expand(stored, expanded_);
  }

  /// Takes a record down; where the next one is to be found.
  Bytes note(const LogRecord& record, Bytes position) {
    FoundRecord found{record, position, true};
    const Bytes payload = position + record_header_bytes;
    if (payload + static_cast<Bytes>(record.stored) > end_) {
      found.intact = false;
    } else if (depth_ == ReadDepth::payloads && record.kind == RecordKind::data) {
      const auto bytes = segment_.bytes(payload, record.stored, payload_);
      found.intact = bytes && crc32c(*bytes) == record.data_checksum && expands(record, *bytes);
    }
    findings_.records.push_back(found);
    // Behind a payload that is not all there, another record may have been begun anywhere.
    const Bytes next = found.intact ? position + record_bytes(record.stored) : payload;
    report(next);
    return next;
  }

  /// The first place from `position` on where a record is, or the end.
  Bytes next_record(Bytes position) {
    const Bytes last = depth_ == ReadDepth::headers ? position + quick_search_bytes : end_;
    while (position + record_header_bytes <= end_ && position < last) {
      const Bytes length = std::min(search_bytes, end_ - position);
      const auto bytes = segment_.bytes(position, length, payload_);
      if (!bytes) {
        findings_.readable = tl::unexpected(bytes.error());
        return end_;
      }
      const std::string_view text(reinterpret_cast<const char*>(bytes->data()), bytes->size());
      for (std::size_t at = text.find("FBR"); at != std::string_view::npos;
           at = text.find("FBR", at + 1)) {
        const Bytes there = position + static_cast<Bytes>(at);
        if (there % record_alignment != 0 || there + record_header_bytes > end_) continue;
        if (record_at(there)) return there;
        if (!findings_.readable) return end_;
      }
      position += length;
      report(position);
    }
    return end_;
  }

  void report(Bytes position) {
    if (progress_ && position > reported_) {
      progress_(position - reported_);
      reported_ = position;
    }
  }

  const LogSegment& segment_;
  const Bytes end_;
  const ReadDepth depth_;
  const ScanProgress& progress_;
  SegmentFindings findings_;
  std::vector<std::byte> header_;
  std::vector<std::byte> payload_;
  std::vector<std::byte> expanded_;
  Bytes reported_ = 0;
};

}  // namespace

SegmentFindings scan_segment(const LogSegment& segment, ReadDepth depth,
                             const ScanProgress& progress) {
  const auto size = segment.storage().size();
  if (!size) {
    SegmentFindings findings;
    findings.readable = tl::unexpected(size.error());
    return findings;
  }
  return Scan(segment, std::min(*size, segment.superblock().segment_bytes), depth, progress).run();
}

}  // namespace forebay
