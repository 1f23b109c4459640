#pragma once

#include <string>
#include <vector>

#include "core/engine/cache/recovery.hpp"
#include "toolkit/native/found_logs.hpp"

namespace forebay {

/// Nothing in it waits for the file, and nothing that protects it can hold more of it.
bool holds_nothing(const FoundLog& log);

/// The logs of one file.
struct FileLogs {
  FileIdentity file;
  /// Also those that cannot be read, where a notice says whose they are.
  std::vector<const FoundLog*> logs;
  std::vector<const FoundLog*> parity;  ///< Logs that protect others.
  std::vector<const MissingLog*> missing;
  /// There may be more of them.
  bool has_unread_notices = false;

  std::vector<const FoundLog*> all() const;
  /// A process that lives uses one.
  bool in_use() const;
  /// They are here, and nothing in them waits for the file.
  bool done_with() const;
  std::vector<std::string> that_hold_nothing() const;
};

/// What was found, by file; what cannot be read and has no notice belongs to none.
std::vector<FileLogs> by_file(const FoundLogs& found);

/// `user`: who has them from then on, as others see it. Error: exists, where a process that lives
/// uses one.
Result<std::vector<LeftLog>> lock_all(const std::vector<const FoundLog*>& logs,
                                      LogDirectory::User user = LogDirectory::User::program);

}  // namespace forebay
