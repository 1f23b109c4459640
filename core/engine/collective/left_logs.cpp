#include "core/engine/collective/left_logs.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <system_error>
#include <thread>
#include <vector>

#include "core/engine/cache/emulated_node.hpp"
#include "core/engine/cache/file_identity.hpp"
#include "core/engine/cache/log_directory.hpp"
#include "core/engine/cache/overtaken_logs.hpp"
#include "core/engine/collective/cache_place.hpp"

namespace forebay {
namespace {

/// Seconds by which the clocks of a cluster's nodes may differ, of which one is a rounding.
constexpr std::int64_t most_apart_s = 2;

/// A recovery sees the mark of who opens its file before its next write: so it lets go of its logs
/// then, or writes no more once it gets to it.
constexpr std::chrono::seconds longest_end_of_recovery(10);
constexpr std::chrono::milliseconds between_looks(10);

using User = LogDirectory::User;

/// On this node.
User user_of(const DirtyNotice& notice) {
  const std::filesystem::path place = std::filesystem::path(notice.log_path).parent_path();
  const auto directory = CacheDirectory::open(place.string(), CacheDirectory::Access::existing);
  if (!directory) return User::nobody;
  const auto log = LogDirectory::open(*directory, notice.log, LogDirectory::Use::look);
  return log ? (*log)->user() : User::nobody;
}

struct Found {
  std::vector<std::string> left;       ///< Logs of programs that have ended.
  std::vector<std::string> running;    ///< Of another job, which still writes them.
  std::vector<DirtyNotice> recovered;  ///< Those that a recovery of this node has.
  bool is_elsewhere = false;           ///< One of those that are left is on another node.
  std::vector<std::string> unread;     ///< Whose notices cannot be read.
  std::string problem;                 ///< Why not all are known; empty: they are.

  bool nothing() const {
    return left.empty() && running.empty() && recovered.empty() && problem.empty();
  }
  std::vector<std::string> all() const {
    std::vector<std::string> logs = left;
    logs.insert(logs.end(), running.begin(), running.end());
    logs.insert(logs.end(), unread.begin(), unread.end());
    for (const DirtyNotice& notice : recovered) logs.push_back(notice.log);
    return logs;
  }
};

Found find(const FileIdentity& file, const Sidecar& sidecar, std::int64_t started_unix_s) {
  Found found;
  const auto notices = sidecar.read();
  if (!notices) {
    found.problem = to_string(notices.error());
    return found;
  }
  found.unread = notices->unread;
  if (!notices->problems.empty()) found.problem = notices->problems.front();
  const std::string job = job_number();
  for (const DirtyNotice& notice : notices->notices) {
    const bool here = on_this_host(notice.host);
    // What was written to a file that is gone is no matter of this one.
    if (!same_file(notice.file, file)) continue;
    const bool same_job = !notice.job.empty() && notice.job == job;
    const bool since_then = notice.since_unix_s + most_apart_s >= started_unix_s;
    const bool ours = same_job && since_then && !notice.is_left;
    const User user = here ? user_of(notice) : User::nobody;
    if (user == User::recovery) {
      found.recovered.push_back(notice);
    } else if (here ? user == User::nobody : !ours) {
      found.left.push_back(notice.log);
      found.is_elsewhere = found.is_elsewhere || !here;
    } else if (here && !same_job && !notice.job.empty() && !job.empty()) {
      found.running.push_back(notice.log);
    }
  }
  return found;
}

/// "2 write-behind logs of WHOM hold bytes that are not in the file".
std::string told(std::size_t logs, const char* whom) {
  return fmt::format("{} write-behind log{} of {} hold{} bytes that are not in the file", logs,
                     logs == 1 ? "" : "s", whom, logs == 1 ? "s" : "");
}

/// Once its logs are marked, a recovery lets go of them. False: it has not.
bool await_end(const std::vector<DirtyNotice>& recovered) {
  const auto end = std::chrono::steady_clock::now() + longest_end_of_recovery;
  const auto is_at_it = [](const DirtyNotice& notice) { return user_of(notice) == User::recovery; };
  while (std::ranges::any_of(recovered, is_at_it)) {
    if (std::chrono::steady_clock::now() >= end) return false;
    std::this_thread::sleep_for(between_looks);
  }
  return true;
}

/// They are older than what is written from here on. What there is to tell of that.
std::string mark(const Sidecar& sidecar, const Found& found) {
  // A recovery of another node is not seen from here; it goes by marks that are new.
  const bool anew = !found.recovered.empty() || found.is_elsewhere;
  const auto marked = mark_overtaken(sidecar, new_log_name(), found.all(), anew);
  if (!marked) {
    return fmt::format(" (logs could not be marked as older than what is written now: {})",
                       to_string(marked.error()));
  }
  if (await_end(found.recovered)) return {};
  return " (the recovery still has them, and ends before its next write)";
}

/// Its directory is the last of a log that is removed.
bool is_removed(const DirtyNotice& notice) {
  std::error_code unknown;
  const bool is_empty = std::filesystem::is_empty(notice.log_path, unknown);
  return unknown ? unknown == std::errc::no_such_file_or_directory : is_empty;
}

/// After `before`, of which the recovery has let go. Where a log is gone its notice goes next.
Found find_again(const Found& before, const FileIdentity& file, const Sidecar& sidecar,
                 std::int64_t started_unix_s) {
  Found found = find(file, sidecar, started_unix_s);
  for (const DirtyNotice& notice : before.recovered) {
    if (is_removed(notice)) std::erase(found.left, notice.log);
  }
  return found;
}

}  // namespace

std::string warn_of_left_logs(const std::string& path, bool writing, std::int64_t started_unix_s) {
  const auto file = identify(path);
  if (!file) return {};
  const Sidecar sidecar(file->path);
  std::error_code ignored;
  if (!std::filesystem::exists(sidecar.path(), ignored)) return {};
  Found found = find(*file, sidecar, started_unix_s);
  if (found.nothing()) {
    // Marks of logs that are gone concern nobody; whoever looks next tries again.
    if (writing) (void)forget_overtaken(sidecar);
    return {};
  }
  const std::string problem = writing && !found.all().empty() ? mark(sidecar, found) : "";
  if (writing && !found.recovered.empty()) {
    found = find_again(found, *file, sidecar, started_unix_s);
    if (found.nothing()) (void)forget_overtaken(sidecar);
  }
  std::vector<std::string> words;
  if (!found.left.empty()) {
    words.push_back(fmt::format(
        "{}; {}: forebay cache recover {}", told(found.left.size(), "an earlier program"),
        writing ? "stop, and bring them there before it is written again" : "bring them there",
        path));
  }
  if (!found.running.empty()) {
    words.push_back(told(found.running.size(), "another job, which is running,") +
                    " yet: wait until it has closed the file");
  }
  if (!found.recovered.empty()) {
    words.push_back(told(found.recovered.size(), "an earlier program") +
                    " yet, and are being recovered: wait until that is done");
  }
  if (!found.problem.empty()) {
    words.push_back(
        "whether write-behind logs hold bytes that are not in the file cannot be told (" +
        found.problem + "): forebay cache ls " + path);
  }
  return fmt::format("{}{}", fmt::join(words, "; "), problem);
}

}  // namespace forebay
