#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/engine/redundancy/rebuild.hpp"
#include "toolkit/native/file_logs.hpp"

namespace forebay {

/// What is there to recover a file from, once everything was made again that can be.
struct GatheredLogs {
  std::vector<LeftLog> logs;
  std::vector<const MissingLog*> missing;
  std::vector<const FoundLog*> unreadable;  ///< Here, and none of `logs`.
  int rebuilt_logs = 0;
  RebuildReport rebuilt;
  /// Of logs that are missing or unreadable and may have to be rebuilt from `logs`, or from what
  /// protects them together with them.
  std::vector<MissingLog> needed_for;
  /// There may be more such logs.
  bool has_unread_notices = false;

  bool needed() const { return has_unread_notices || !needed_for.empty(); }
};

struct GatherChoices {
  SaidLost lost;
  /// Goes on although a log is missing or unreadable. Else nothing is rebuilt then.
  bool partial = false;
  /// Goes on although not all of a log can be got back.
  bool skip_damage = false;
};

struct GatherProgress {
  ScanProgress checked;                                ///< Of the logs.
  std::function<void(Bytes done, Bytes all)> rebuilt;  ///< Into logs.
};

/// Of the logs of one file, which are `locked`, makes those again, as far as what is here protects
/// them, that this node or the user says are lost, that cannot be read, or that are damaged.
/// What it reads of a log that is whole comes with that. `replayed`: logs that an interrupted
/// recovery has brought to the file. Errors: io, where
/// something cannot be got back, ...
Result<GatheredLogs> gather(const FileLogs& logs, std::vector<LeftLog> locked,
                            const std::vector<std::string>& replayed, const GatherChoices& choices,
                            const GatherProgress& progress);

}  // namespace forebay
