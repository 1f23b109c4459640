#include "core/engine/cache/segment_scan.hpp"

#include <algorithm>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>
#include <utility>

#include "core/engine/cache/crc32c.hpp"
#include "core/engine/compression/adaptive_compressor.hpp"

namespace forebay {
namespace {

constexpr Bytes search_bytes = 1 * MiB;
constexpr Bytes quick_search_bytes = 4 * MiB;
/// How far the device works ahead of us. Where nobody asks, most kernels read 128 KiB ahead, which
/// is less than most payloads: the device would wait while their checksums are computed.
constexpr Bytes read_ahead_bytes = 8 * MiB;

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
  /// Bytes of the segment.
  Result<std::span<const std::byte>> bytes(Bytes position, Bytes length,
                                           std::vector<std::byte>& buffer) {
    // All of it is going to be read.
    if (depth_ == ReadDepth::payloads) read_ahead(position + length);
    return segment_.bytes(position, length, buffer);
  }

  /// What lies before `position` is asked for, and more, a good deal at a time.
  void read_ahead(Bytes position) {
    if (position + read_ahead_bytes / 2 < asked_ || asked_ >= end_) return;
    const Bytes until = std::min(position + read_ahead_bytes, end_);
    segment_.storage().read_ahead({asked_, until - asked_});
    asked_ = until;
  }

  std::optional<LogRecord> record_at(Bytes position) {
    const auto header = bytes(position, record_header_bytes, header_);
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
      const auto stored = bytes(payload, record.stored, payload_);
      found.intact = stored && crc32c(*stored) == record.data_checksum && expands(record, *stored);
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
      const auto searched = bytes(position, length, payload_);
      if (!searched) {
        findings_.readable = tl::unexpected(searched.error());
        return end_;
      }
      const std::string_view text(reinterpret_cast<const char*>(searched->data()),
                                  searched->size());
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
  Bytes asked_ = superblock_bytes;  ///< What lies before it was asked for.
};

}  // namespace

ScanProgress in_turn(ScanProgress progress) {
  if (!progress) return {};
  return [progress = std::move(progress), mutex = std::make_shared<std::mutex>()](Bytes more) {
    const std::scoped_lock lock(*mutex);
    progress(more);
  };
}

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
