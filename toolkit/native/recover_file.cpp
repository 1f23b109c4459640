#include "toolkit/native/recover_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "core/engine/cache/overtaken_logs.hpp"
#include "core/model/counters.hpp"
#include "core/storage/descriptor.hpp"
#include "core/storage/file.hpp"
#include "core/storage/past_page_cache.hpp"
#include "toolkit/native/cache_json.hpp"

namespace forebay {
namespace {

using nlohmann::json;
using Clock = std::chrono::steady_clock;

/// Whether a program has opened the file to write, while it is being recovered.
constexpr std::chrono::milliseconds between_looks(50);

/// Why nothing is to be written to the other file; empty: it is new, or holds nothing, or is said
/// to be begun by an earlier recovery.
std::string objection(const RecoverOptions& options) {
  struct stat status{};
  if (options.into.empty() || ::stat(options.into.c_str(), &status) != 0) return {};
  if (!S_ISREG(status.st_mode)) return options.into + " is no regular file";
  if (options.further || status.st_size == 0) return {};
  return fmt::format("{} is there already, and holds {} bytes", options.into, status.st_size);
}

Result<std::unique_ptr<StorageFile>> open_target(const FileLogs& logs,
                                                 const RecoverOptions& options,
                                                 Counters& counters) {
  if (options.into.empty()) {
    return open_posix_file(logs.file.path, OpenMode::read_write, counters);
  }
  Descriptor made(::open(options.into.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666));
  if (!made.valid()) return fail(errno, "make " + options.into);
  return open_posix_file(options.into, OpenMode::read_write, counters);
}

/// Whether the file system that the file is on is there: else its notices could not be seen, and
/// it could be somewhere else that the file is gone from.
bool is_in_reach(const FileIdentity& file) {
  const std::string directory = std::filesystem::path(file.path).parent_path();
  struct stat status{};
  return ::stat(directory.c_str(), &status) == 0 && status.st_dev == file.device;
}

/// The file beside which is told what of its logs was recovered. Where its directory is gone, with
/// all notices, it is the other one.
std::string beside_which_it_is_noted(const FileIdentity& file, const RecoverOptions& options) {
  std::error_code unknown;
  const auto directory = std::filesystem::path(file.path).parent_path();
  const bool is_gone = !std::filesystem::exists(directory, unknown) && !unknown;
  return is_gone && !options.into.empty() ? options.into : file.path;
}

/// Logs by how often other programs have opened the file to write since: the oldest first.
using Turns = std::map<int, std::vector<LeftLog>, std::greater<>>;

/// What protects logs goes with the last, and so does what has `nothing` for the file.
Turns by_age(const std::map<std::string, int>& times, std::vector<LeftLog> logs,
             const std::vector<std::string>& nothing) {
  Turns turns;
  turns[0];
  for (LeftLog& log : logs) {
    const bool is_newest = std::ranges::find(nothing, log.name) != nothing.end();
    turns[is_newest ? 0 : times.at(log.name)].push_back(std::move(log));
  }
  return turns;
}

void add(RecoveryReport& total, const RecoveryReport& part) {
  total.replay.records += part.replay.records;
  total.replay.record_bytes += part.replay.record_bytes;
  total.replay.written += part.replay.written;
  total.replay.truncations += part.replay.truncations;
  total.logs += part.logs;
  total.kept += part.kept;
  total.dropped_bytes += part.dropped_bytes;
  total.replayed_incomplete_bytes += part.replayed_incomplete_bytes;
  total.unusable_bytes += part.unusable_bytes;
  total.damage.insert(total.damage.end(), part.damage.begin(), part.damage.end());
  total.begun.insert(total.begun.end(), part.begun.begin(), part.begun.end());
  total.unfinished = part.unfinished;  // As it is after the last one.
}

/// Gives the logs up.
Result<RecoveryReport> drop_turn(Sidecar& sidecar, std::vector<LeftLog> logs, bool keep) {
  for (LeftLog& log : logs) log.contents.reset();  // It holds their segments open.
  if (auto dropped = drop(sidecar, logs, keep); !dropped) return tl::unexpected(dropped.error());
  RecoveryReport report;
  report.logs = static_cast<int>(logs.size());
  report.kept = keep ? report.logs : 0;
  return report;
}

/// Each of `turns` is recovered for itself: what comes later is newer, whatever the logs say.
/// Errors: those of recover(); a turn that came before is done then.
Result<RecoveryReport> recover_in_turn(StorageFile& file, Sidecar& sidecar, Turns turns,
                                       const RecoveryChoices& choices, bool drops_overtaken,
                                       const RecoveryProgress& progress) {
  RecoveryReport total;
  for (auto& [times, logs] : turns) {
    const auto report = times > 0 && drops_overtaken
                            ? drop_turn(sidecar, std::move(logs), choices.keep)
                            : recover(file, sidecar, std::move(logs), choices, progress);
    if (!report) return report;
    add(total, *report);
  }
  if (auto forgotten = forget_overtaken(sidecar); !forgotten) {
    return tl::unexpected(forgotten.error());
  }
  return total;
}

/// Why what is not here, or cannot be read, keeps the rest from being recovered; empty: it does
/// not.
struct Obstacle {
  const char* state = "";
  std::string why;
};

Obstacle obstacle(const GatheredLogs& gathered, const GatherChoices& choices) {
  const bool only_parity = std::ranges::all_of(
      gathered.logs, [](const LeftLog& log) { return log.purpose == LogPurpose::protection; });
  if (!gathered.unreadable.empty() && (!choices.partial || only_parity)) {
    const LogSummary& log = gathered.unreadable.front()->summary;
    return {"unreadable", fmt::format("its log {} cannot be read: {}", log.path,
                                      to_string(log.readable.error()))};
  }
  if (gathered.missing.empty() || choices.partial) return {};
  const auto lost = std::ranges::find_if(gathered.missing, [&](const MissingLog* log) {
    return choices.lost.names(log->notice.host, log->notice.log);
  });
  if (lost != gathered.missing.end()) {
    return {"partial", fmt::format("the log {} of {} is lost, and nothing was found that rebuilds "
                                   "it: name the directories of the other logs, too",
                                   (*lost)->notice.log, (*lost)->notice.host)};
  }
  return {"partial",
          "other logs of the file are not here, and what they hold may be older or newer"};
}

RecoveryChoices choices_for(const RecoverOptions& options, bool keep) {
  RecoveryChoices choices{.incomplete = {},
                          .skip_damage = options.choices.skip_damage,
                          .threads = options.threads,
                          .keep = keep,
                          .lost = options.choices.lost};
  if (options.incomplete == "drop") choices.incomplete = Incomplete::drop;
  if (options.incomplete == "replay") choices.incomplete = Incomplete::replay;
  return choices;
}

/// Where logs were kept, and for which others.
json kept_json(const FileLogs& logs, const GatheredLogs& gathered) {
  std::set<std::string> directories;
  for (const FoundLog* log : logs.all()) {
    std::error_code ignored;
    if (std::filesystem::exists(log->summary.path, ignored)) {
      directories.insert(log->directory->path());
    }
  }
  json needed_for = json::array();
  for (const MissingLog& log : gathered.needed_for) needed_for.push_back(missing_json(log));
  return {{"kept_in", directories}, {"kept_for", std::move(needed_for)}};
}

json recovered(json result, const std::string& into, const Result<RecoveryReport>& report,
               const GatheredLogs& gathered, Clock::time_point started) {
  if (!report) {
    const bool asks = report.error().kind == ErrorKind::invalid_argument;
    return refused(std::move(result), asks ? "incomplete" : "failed", to_string(report.error()));
  }
  result.update(report_json(*report));
  for (const std::string& what : gathered.rebuilt.missing) result["damage"].push_back(what);
  result["rebuilt_logs"] = gathered.rebuilt_logs;
  result["rebuilt_bytes"] = gathered.rebuilt.bytes;
  result["state"] = "recovered";
  result["into"] = into;
  result["seconds"] = std::chrono::duration<double>(Clock::now() - started).count();
  return result;
}

}  // namespace

json recover_file(const FileLogs& logs, const RecoverOptions& options, ProgressPrinter& printer) {
  json result = {{"file", logs.file.path}, {"error", nullptr}};
  Sidecar sidecar(beside_which_it_is_noted(logs.file, options));
  const auto replayed = sidecar.recovered();
  if (!replayed) return refused(result, "failed", to_string(replayed.error()));
  const bool elsewhere = std::ranges::any_of(logs.missing, [&](const MissingLog* log) {
    return std::ranges::find(*replayed, log->notice.log) == replayed->end();
  });
  if (logs.all().empty() && elsewhere) {
    return refused(result, "elsewhere", "its logs are on other nodes, lost, or not to be seen");
  }
  if (logs.in_use()) return refused(result, "in use", "a running process writes it");
  if (const std::string why = objection(options); !why.empty()) {
    return refused(result, "occupied", why);
  }
  const std::string state = file_state(logs.file);
  const bool no_target = state != "there" && options.into.empty();
  if (no_target && !(logs.done_with() && is_in_reach(logs.file))) {
    return refused(result, state.c_str(), "the file that was written is not there any more");
  }
  // Before anybody can see the recovery: of a program that opens the file from here on, the user
  // has not said what is to be done.
  const auto marks = overtaken_logs(sidecar);
  if (!marks) return refused(result, "failed", to_string(marks.error()));
  // Another file is nobody's business.
  const bool is_seen = options.into.empty();
  auto locked =
      lock_all(logs.all(), is_seen ? LogDirectory::User::recovery : LogDirectory::User::program);
  if (!locked) {
    const bool used = locked.error().kind == ErrorKind::exists;
    return refused(result, used ? "in use" : "failed", to_string(locked.error()));
  }
  const auto started = Clock::now();
  if (no_target) {
    return recovered(result, logs.file.path, drop_turn(sidecar, std::move(*locked), false), {},
                     started);
  }
  Bytes stored = 0;
  for (const FoundLog* log : logs.all()) stored += log->summary.contents.stored_bytes;
  Bytes checked = 0;
  // What is damaged is read once more, together with what was made of it again.
  const ScanProgress check = [&](Bytes more) {
    checked = std::min(checked + more, stored);
    printer.print("check", logs.file.path, checked, stored);
  };
  auto gathered = gather(logs, std::move(*locked), *replayed, options.choices,
                         {.checked = check, .rebuilt = [&](Bytes done, Bytes all) {
                            printer.print("rebuild", logs.file.path, done, all);
                          }});
  if (!gathered) return refused(result, "failed", to_string(gathered.error()));
  const Obstacle met = obstacle(*gathered, options.choices);
  if (!met.why.empty()) return refused(result, met.state, met.why);
  std::map<std::string, int> times;  // That they were overtaken.
  for (const LeftLog& log : gathered->logs) {
    const auto marked = marks->find(log.name);
    times[log.name] = marked == marks->end() ? 0 : marked->second;
  }
  Turns turns = by_age(times, std::move(gathered->logs), logs.that_hold_nothing());
  if (turns.size() > 1 && options.overtaken.empty()) {
    return refused(result, "overtaken",
                   "programs have opened it to write since these logs were left, and what the logs "
                   "hold may be older than what it holds now");
  }
  const RecoveryProgress progress{.checked = check, .replayed = [&](Bytes done, Bytes all) {
                                    printer.print("replay", logs.file.path, done, all);
                                  }};
  Counters counters;
  auto file = open_target(logs, options, counters);
  if (!file) return refused(result, "failed", to_string(file.error()));
  *file = past_page_cache(std::move(*file), counters);
  if (is_seen) {
    *file = until_overtaken(std::move(*file), sidecar, std::move(times), between_looks);
  }
  const auto report =
      recover_in_turn(**file, sidecar, std::move(turns), choices_for(options, gathered->needed()),
                      options.overtaken == "drop", progress);
  if (!report && report.error().kind == ErrorKind::exists) {
    return refused(result, "overtaken",
                   to_string(report.error()) +
                       ", and what it writes is not written over: what the logs hold may be older, "
                       "and a part of it may be in the file by now");
  }
  if (report && report->kept > 0) result.update(kept_json(logs, *gathered));
  return recovered(std::move(result), (*file)->path(), report, *gathered, started);
}

}  // namespace forebay
