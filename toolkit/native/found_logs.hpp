#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/engine/cache/log_directory.hpp"
#include "core/engine/cache/log_summary.hpp"
#include "core/engine/cache/sidecar.hpp"

namespace forebay {

/// Which logs are meant.
struct LogSelection {
  /// Node-local paths to look in, if they are there, and in those of nodes emulated below them.
  std::vector<std::string> directories;
  std::vector<std::string> files;  ///< Only logs of these files; empty: of any.
  std::vector<std::string> names;  ///< Only logs of these names; empty: of any.
};

struct FoundLog {
  std::shared_ptr<CacheDirectory> directory;
  LogSummary summary;
  /// Of a log that cannot be read, which does not say itself of what file it is.
  std::optional<DirtyNotice> notice = std::nullopt;
};

/// A log that a notice names, and that is not among those found.
struct MissingLog {
  DirtyNotice notice;
  /// The file beside which the notice is: not that which it names, where a directory was moved.
  std::string beside;
  /// This node should have the log, and was seen not to have it; else it is on another node, or
  /// where it should be could not be looked at.
  bool is_lost = false;
};

/// What something was, and why it cannot be looked at.
struct LogProblem {
  std::string where;
  Error error;
};

struct FoundLogs {
  std::vector<FoundLog> logs;
  /// Of notices beside the files of those logs, and beside the selected files.
  std::vector<MissingLog> missing;
  /// Selected files with a sidecar and without a log or a notice: a recovery was interrupted when
  /// all of them were gone, and nothing but the file leads to what it left.
  std::vector<FileIdentity> interrupted;
  std::vector<LogProblem> problems;
  std::set<std::string> with_unread_notices;  ///< Files, by path.
};

/// Looks in the directories, and in those that notices name on this node: notices beside the
/// selected files, and beside the files of what was found. In the latter there may be logs of
/// other files, which are told as well unless files were selected.
FoundLogs find_logs(const LogSelection& selection, ReadDepth depth,
                    const ScanProgress& progress = {});

}  // namespace forebay
