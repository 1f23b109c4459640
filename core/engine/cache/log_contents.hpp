#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/engine/cache/log_record.hpp"
#include "core/engine/cache/log_segment.hpp"
#include "core/engine/cache/log_store.hpp"
#include "core/engine/cache/segment_scan.hpp"
#include "core/model/error.hpp"

namespace forebay {

/// A record that asks for something to be done with the file, intact.
struct LogEntry {
  LogRecord record;  ///< data, truncate or truncated.
  LogPlace place;    ///< Of the payload of a data record.
};

/// Records that are needed, or may be, and cannot be read.
struct LogDamage {
  std::uint64_t first_sequence = 0;  ///< 0: not known.
  std::uint64_t last_sequence = 0;
  std::optional<Extent> extent;  ///< Of the file: known where only the payload is damaged.
  std::string what;              ///< For a person.
};

/// What one log holds, read back: what is not flushed yet, in the order in which it was written,
/// and what is wrong with it.
///
/// `complete` are the entries up to the last commit, `incomplete` those behind it, as far as they
/// are without a gap: what a writer was about when it died. A crash of the writer leaves a prefix
/// of the log, so what is missing before a commit is damage. Behind a gap after the last commit
/// nothing is used, since a crash of the node may lose any of it.
struct LogContents {
  LogIdentity identity;
  std::vector<LogEntry> complete;
  std::vector<LogEntry> incomplete;
  std::vector<LogDamage> damage;
  std::uint64_t committed = 0;      ///< Sequence number of the last commit; 0: there is none.
  std::uint64_t flushed = 0;        ///< Records up to this one are durable in the file.
  std::uint64_t last_sequence = 0;  ///< Of the last record that is there.
  std::uint64_t last_epoch = 0;
  bool torn = false;           ///< A record at the end was begun and not finished.
  Bytes beyond_gap_bytes = 0;  ///< Payload behind a gap after the last commit.
  Bytes stored_bytes = 0;      ///< What the segments take on the device.

  Bytes complete_bytes() const;
  Bytes incomplete_bytes() const;
  /// Nothing in it waits for the file.
  bool clean() const { return complete.empty() && incomplete.empty() && damage.empty(); }
};

/// Reads a log. Errors, with a message for a person: no_such_file (it holds no segment: nothing was
/// written), unsupported (of another version), io (unreadable, or no superblock is intact).
/// Up to `threads` threads read its segments, side by side.
Result<LogContents> read_log(LogStore& store, ReadDepth depth, const ScanProgress& progress = {},
                             int threads = 1);

/// Where a log is. Segments that are in both places are read in both: what is damaged in one may be
/// intact in the other.
struct LogParts {
  LogStore* store = nullptr;
  LogStore* remade = nullptr;  ///< What could be made again of it; null: nothing was.
};

/// The same of several logs, in their order.
std::vector<Result<LogContents>> read_logs(std::span<const LogParts> logs, ReadDepth depth,
                                           int threads, const ScanProgress& progress = {});

}  // namespace forebay
