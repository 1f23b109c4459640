#include "toolkit/native/found_logs.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "core/engine/cache/emulated_node.hpp"
#include "core/engine/cache/file_identity.hpp"
#include "core/engine/cache/log_identity.hpp"
#include "core/engine/cache/side_by_side.hpp"

namespace forebay {
namespace {

namespace fs = std::filesystem;

/// The path that a log has of the file: without links, also where the file is gone.
std::string real_path(const std::string& path) {
  std::error_code failure;
  const fs::path real = fs::weakly_canonical(path, failure);
  return failure ? path : real.string();
}

/// The directories of this user's emulated nodes; anybody may have some in /dev/shm.
std::vector<std::string> emulated_nodes_in(const std::string& place) {
  std::vector<std::string> nodes;
  std::error_code failure;
  for (fs::directory_iterator entry(place, failure), end; !failure && entry != end;
       entry.increment(failure)) {
    struct stat status{};
    if (names_emulated_node(entry->path().filename().string()) &&
        ::lstat(entry->path().c_str(), &status) == 0 && S_ISDIR(status.st_mode) &&
        status.st_uid == ::geteuid()) {
      nodes.push_back(entry->path().string());
    }
  }
  std::ranges::sort(nodes);
  return nodes;
}

/// Headers lie far from each other, and a device answers several requests in the time of one.
constexpr int reads_at_once = 8;

class Search {
 public:
  Search(const LogSelection& selection, ReadDepth depth, const ScanProgress& progress)
      : selection_(selection), depth_(depth), progress_(in_turn(progress)) {
    for (const std::string& file : selection.files) files_.insert(real_path(file));
  }

  FoundLogs run() {
    for (const std::string& file : files_) read_notices(file);
    for (const std::string& place : selection_.directories) {
      look_in(place);
      for (const std::string& node : emulated_nodes_in(place)) look_in(node);
    }
    look_where_notices_say();
    // Other logs of the files that were found, wherever they are on this node.
    std::set<std::string> others;
    for (const FoundLog& log : found_.logs) {
      if (log.summary.readable) others.insert(log.summary.contents.identity.file.path);
    }
    for (const std::string& file : others) {
      if (!files_.contains(file)) read_notices(file);
    }
    look_where_notices_say();
    look_again();
    name_missing();
    for (const std::string& file : files_) note_interrupted(file);
    return std::move(found_);
  }

 private:
  void look_where_notices_say() {
    std::set<std::string> places;
    for (const auto& [log, announced] : notices_) {
      if (on_this_host(announced.notice.host)) places.insert(place_of(announced.notice));
    }
    for (const std::string& place : places) {
      if (!seen_.contains(place)) look_in(place);
    }
  }

  void read_notices(const std::string& file) {
    const auto read = Sidecar(file).read();
    if (!read) {
      found_.problems.push_back({file, read.error()});
      found_.with_unread_notices.insert(file);
      return;
    }
    if (!read->problems.empty()) found_.with_unread_notices.insert(file);
    for (const DirtyNotice& notice : read->notices) {
      notices_.emplace(notice.log, MissingLog{notice, file, false});
    }
    for (const std::string& problem : read->problems) {
      found_.problems.push_back({file, {ErrorKind::io, 0, problem}});
    }
  }

  void look_in(const std::string& place) {
    auto directory = CacheDirectory::open(place, CacheDirectory::Access::existing);
    if (!directory) {
      if (directory.error().kind != ErrorKind::no_such_file) {
        found_.problems.push_back({place, directory.error()});
      }
      return;
    }
    if (!seen_.insert((*directory)->path()).second) return;
    auto names = (*directory)->logs();
    if (!names) {
      found_.problems.push_back({place, names.error()});
      return;
    }
    std::erase_if(*names, [this](const std::string& name) { return !named(name); });
    std::vector<Result<std::optional<LogSummary>>> summaries(names->size());
    const int threads = reads_at_once / std::max(static_cast<int>(names->size()), 1);
    side_by_side(names->size(), reads_at_once, [&](std::size_t at) {
      summaries[at] = summarise(*directory, (*names)[at], depth_, threads, progress_);
    });
    for (std::size_t at = 0; at < names->size(); ++at) {
      note(*directory, (*names)[at], std::move(summaries[at]));
    }
  }

  void note(const std::shared_ptr<CacheDirectory>& directory, const std::string& name,
            Result<std::optional<LogSummary>> summary) {
    if (!summary) {
      found_.problems.push_back({directory->path() + "/" + name, summary.error()});
      return;
    }
    std::optional<LogSummary>& log = *summary;
    if (!log) return;
    const bool meant = files_.empty() || notices_.contains(name) ||
                       (log->readable && files_.contains(log->contents.identity.file.path));
    if (meant) found_.logs.push_back({directory, std::move(*log)});
  }

  static std::string place_of(const DirtyNotice& notice) {
    return fs::path(notice.log_path).parent_path().string();
  }

  /// Programs make logs and bring them to their files while others are looked at.
  void look_again() {
    std::set<std::string> found;
    for (const FoundLog& log : found_.logs) found.insert(log.summary.name);
    const auto is_meant = [&](const std::string& log, const MissingLog& announced) {
      return !found.contains(log) && named(log) && on_this_host(announced.notice.host);
    };
    std::map<std::string, Result<Sidecar::Notices>> now;  // By the file that they are beside.
    for (const auto& [log, announced] : notices_) {
      if (!is_meant(log, announced) || now.contains(announced.beside)) continue;
      now.emplace(announced.beside, Sidecar(announced.beside).read());
    }
    std::erase_if(notices_, [&](const auto& entry) {
      const auto& [log, announced] = entry;
      if (!is_meant(log, announced)) return false;
      const auto& there = now.at(announced.beside);
      return there && there->problems.empty() &&
             std::ranges::find(there->notices, log, &DirtyNotice::log) == there->notices.end();
    });
    for (auto& [log, announced] : notices_) {
      if (!is_meant(log, announced)) continue;
      const auto directory =
          CacheDirectory::open(place_of(announced.notice), CacheDirectory::Access::existing);
      bool is_gone = !directory && directory.error().kind == ErrorKind::no_such_file;
      if (directory) {
        auto summary = summarise(*directory, log, depth_, reads_at_once, progress_);
        is_gone = summary && !*summary;
        if (summary) note(*directory, log, std::move(summary));  // Else it is told already.
      }
      announced.is_lost = is_gone && announced.notice.host == this_host();
    }
  }

  bool named(const std::string& log) const {
    const auto& names = selection_.names;
    return names.empty() || std::ranges::find(names, log) != names.end();
  }

  /// Notices of logs that were not found, or cannot be read.
  void name_missing() {
    std::set<std::string> here;
    for (FoundLog& log : found_.logs) {
      here.insert(log.summary.name);
      const auto notice = notices_.find(log.summary.name);
      if (!log.summary.readable && notice != notices_.end()) log.notice = notice->second.notice;
    }
    for (const auto& [name, announced] : notices_) {
      if (!here.contains(name) && named(name)) found_.missing.push_back(announced);
    }
  }

  void note_interrupted(const std::string& path) {
    const bool known = std::ranges::any_of(found_.logs,
                                           [&](const FoundLog& log) {
                                             return log.summary.readable &&
                                                    log.summary.contents.identity.file.path == path;
                                           }) ||
                       std::ranges::any_of(found_.missing, [&](const MissingLog& log) {
                         return log.notice.file.path == path;
                       });
    if (known) return;
    std::error_code ignored;
    if (!fs::exists(Sidecar(path).path(), ignored)) return;
    if (const auto file = identify(path)) found_.interrupted.push_back(*file);
  }

  const LogSelection& selection_;
  const ReadDepth depth_;
  const ScanProgress progress_;
  std::set<std::string> files_;
  std::map<std::string, MissingLog> notices_;  ///< By log.
  std::set<std::string> seen_;                 ///< Directories.
  FoundLogs found_;
};

}  // namespace

FoundLogs find_logs(const LogSelection& selection, ReadDepth depth, const ScanProgress& progress) {
  return Search(selection, depth, progress).run();
}

}  // namespace forebay
