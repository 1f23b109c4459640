#pragma once

#include <functional>
#include <vector>

#include "core/engine/cache/log_record.hpp"
#include "core/engine/cache/log_segment.hpp"

namespace forebay {

/// How much of a log is read.
enum class ReadDepth {
  headers,   ///< What records say, for a quick look: payloads are taken to be right, and what
             ///< lies far behind the last record is not searched for more.
  payloads,  ///< Every checksum.
};

/// Told of bytes of the log that were dealt with since it was told last. Called by several threads
/// in turn, where several read.
using ScanProgress = std::function<void(Bytes)>;
/// The same for several threads: one at a time calls it.
ScanProgress in_turn(ScanProgress progress);

struct FoundRecord {
  LogRecord record;
  Bytes position = 0;  ///< Of its header in the segment.
  bool intact = true;  ///< Its payload is there and has the right checksum.
};

/// Every record of one segment, in the order in which they lie there, whatever lies between them:
/// after bytes that are no record the next one is looked for. The records are genuine, since their
/// headers carry the segment's salt, but they need not be complete or in order.
struct SegmentFindings {
  std::vector<FoundRecord> records;
  Bytes strange_bytes = 0;  ///< Between records: neither a record nor padding.
  Status readable;          ///< Why reading ended early, if it did.
};

SegmentFindings scan_segment(const LogSegment& segment, ReadDepth depth,
                             const ScanProgress& progress = {});

}  // namespace forebay
