#include "toolkit/native/file_logs.hpp"

#include <algorithm>
#include <string>
#include <tuple>
#include <utility>

namespace forebay {

bool holds_nothing(const FoundLog& log) {
  const LogSummary& summary = log.summary;
  if (!summary.readable) {
    // Others got what is protected, whether or not it was durable here.
    const bool is_protected = log.notice && log.notice->is_protected;
    return summary.readable.error().kind == ErrorKind::no_such_file ||
           (summary.only_begun && !is_protected);
  }
  return summary.complete_records == 0 && summary.incomplete_records == 0 &&
         summary.contents.damage.empty();
}

std::vector<const FoundLog*> FileLogs::all() const {
  std::vector<const FoundLog*> all = logs;
  all.insert(all.end(), parity.begin(), parity.end());
  return all;
}

bool FileLogs::in_use() const {
  const auto used = [](const FoundLog* log) { return log->summary.in_use; };
  return std::ranges::any_of(logs, used) || std::ranges::any_of(parity, used);
}

bool FileLogs::done_with() const {
  const auto nothing = [](const FoundLog* log) { return holds_nothing(*log); };
  return !(logs.empty() && parity.empty()) && missing.empty() && !has_unread_notices &&
         std::ranges::all_of(logs, nothing);
}

std::vector<std::string> FileLogs::that_hold_nothing() const {
  std::vector<std::string> names;
  for (const FoundLog* log : logs) {
    if (holds_nothing(*log)) names.push_back(log->summary.name);
  }
  return names;
}

std::vector<FileLogs> by_file(const FoundLogs& found) {
  std::vector<FileLogs> files;
  const auto entry = [&](const FileIdentity& file) -> FileLogs& {
    const auto known = std::ranges::find_if(files, [&](const FileLogs& logs) {
      return logs.file.path == file.path && same_file(logs.file, file);
    });
    FileLogs& logs = known == files.end() ? files.emplace_back() : *known;
    // Not all nodes need be told when the file was made.
    if (logs.file.made_unix_ns == 0) logs.file = file;
    return logs;
  };
  for (const FoundLog& log : found.logs) {
    if (log.summary.readable) {
      const LogIdentity& identity = log.summary.contents.identity;
      FileLogs& file = entry(identity.file);
      (identity.purpose == LogPurpose::data ? file.logs : file.parity).push_back(&log);
    } else if (log.notice) {
      entry(log.notice->file).logs.push_back(&log);
    }
  }
  for (const MissingLog& log : found.missing) entry(log.notice.file).missing.push_back(&log);
  for (const FileIdentity& file : found.interrupted) entry(file);
  for (FileLogs& logs : files) {
    logs.has_unread_notices = found.with_unread_notices.contains(logs.file.path);
  }
  std::ranges::sort(files, {}, [](const FileLogs& logs) {
    return std::tuple(logs.file.path, logs.file.inode, logs.file.made_unix_ns);
  });
  return files;
}

Result<std::vector<LeftLog>> lock_all(const std::vector<const FoundLog*>& logs,
                                      LogDirectory::User user) {
  std::vector<LeftLog> locked;
  for (const FoundLog* log : logs) {
    auto store = LogDirectory::open(log->directory, log->summary.name, LogDirectory::Use::replace);
    if (!store) return tl::unexpected(store.error());
    if (user == LogDirectory::User::recovery) {
      if (auto said = (*store)->say_recovering(); !said) return tl::unexpected(said.error());
    }
    locked.push_back({.name = log->summary.name,
                      .store = std::move(*store),
                      .purpose = log->summary.contents.identity.purpose});
  }
  return locked;
}

}  // namespace forebay
