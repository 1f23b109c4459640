// forebay-cache: looks at write-behind logs, and brings what is left of them to their files. It is
// what `forebay cache` runs; it asks nobody and prints JSON lines: progress, then one result.

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <exception>
#include <functional>
#include <iterator>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "core/engine/cache/overtaken_logs.hpp"
#include "core/engine/cache/recovery.hpp"
#include "core/engine/cache/side_by_side.hpp"
#include "core/engine/redundancy/lost_logs.hpp"
#include "core/storage/file.hpp"
#include "toolkit/native/cache_json.hpp"
#include "toolkit/native/found_logs.hpp"

namespace forebay {
namespace {

using nlohmann::json;
using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds progress_period{200};

/// While the notices of one file are withdrawn, one call after another, the servers are busy with
/// the other.
constexpr int files_recovered_at_once = 2;

struct Options {
  LogSelection selection;
  std::string incomplete;
  std::string overtaken;
  bool skip_damage = false;
  bool partial = false;
  std::string into;
  std::vector<std::string> lost;
  int threads = 0;

  /// Whether the user says that the node's storage, or this log, is lost.
  bool says_lost(const DirtyNotice& notice) const {
    return std::ranges::any_of(lost, [&](const std::string& word) {
      return word == "all" || word == notice.host || word == notice.log;
    });
  }
};

/// Paths may be no UTF-8; JSON is.
void print_line(const json& value) {
  std::puts(value.dump(-1, ' ', false, json::error_handler_t::replace).c_str());
  std::fflush(stdout);
}

/// Prints how far it has got, now and then. Thread-safe.
class ProgressPrinter {
 public:
  void print(const char* phase, const std::string& file, Bytes done, Bytes all) {
    const std::scoped_lock lock(mutex_);
    const auto now = Clock::now();
    if (now - printed_ < progress_period && done < all) return;
    printed_ = now;
    print_line({{"event", "progress"},
                {"phase", phase},
                {"file", file},
                {"done_bytes", done},
                {"all_bytes", all}});
  }

 private:
  std::mutex mutex_;
  Clock::time_point printed_{};
};

json problems_json(const FoundLogs& found) {
  json problems = json::array();
  for (const LogProblem& problem : found.problems) problems.push_back(problem_json(problem));
  return problems;
}

void list(const Options& options, ReadDepth depth) {
  ProgressPrinter printer;
  Bytes checked = 0;
  const ScanProgress progress = [&](Bytes more) {
    checked += more;
    if (depth == ReadDepth::payloads) printer.print("check", "", checked, checked + 1);
  };
  const FoundLogs found = find_logs(options.selection, depth, progress);
  json logs = json::array();
  for (const FoundLog& log : found.logs) logs.push_back(log_json(log));
  json missing = json::array();
  for (const DirtyNotice& notice : found.missing) missing.push_back(missing_json(notice));
  print_line({{"event", "result"},
              {"logs", std::move(logs)},
              {"missing", std::move(missing)},
              {"problems", problems_json(found)}});
}

/// The logs of one file.
struct FileLogs {
  FileIdentity file;
  std::vector<const FoundLog*> logs;
  std::vector<const FoundLog*> parity;  ///< Logs that protect others.
  std::vector<const DirtyNotice*> missing;
};

/// By file; what cannot be read belongs to none.
std::vector<FileLogs> by_file(const FoundLogs& found) {
  std::map<std::tuple<std::string, std::uint64_t>, FileLogs> files;
  const auto entry = [&](const FileIdentity& file) -> FileLogs& {
    FileLogs& logs = files[{file.path, file.inode}];
    logs.file = file;
    return logs;
  };
  for (const FoundLog& log : found.logs) {
    if (!log.summary.readable) continue;
    const LogIdentity& identity = log.summary.contents.identity;
    FileLogs& file = entry(identity.file);
    (identity.purpose == LogPurpose::data ? file.logs : file.parity).push_back(&log);
  }
  for (const DirtyNotice& notice : found.missing) entry(notice.file).missing.push_back(&notice);
  for (const FileIdentity& file : found.interrupted) entry(file);
  std::vector<FileLogs> result;
  result.reserve(files.size());
  for (auto& [identity, logs] : files) result.push_back(std::move(logs));
  return result;
}

Result<std::vector<LeftLog>> lock_all(const std::vector<const FoundLog*>& logs) {
  std::vector<LeftLog> locked;
  for (const FoundLog* log : logs) {
    auto store = LogDirectory::open(log->directory, log->summary.name, LogDirectory::Use::replace);
    if (!store) return tl::unexpected(store.error());
    locked.push_back({.name = log->summary.name,
                      .store = std::move(*store),
                      .purpose = log->summary.contents.identity.purpose});
  }
  return locked;
}

json refused(json result, const char* state, const std::string& why) {
  result["state"] = state;
  result["error"] = why;
  return result;
}

bool in_use(const FileLogs& logs) {
  const auto used = [](const FoundLog* log) { return log->summary.in_use; };
  return std::ranges::any_of(logs.logs, used) || std::ranges::any_of(logs.parity, used);
}

/// Makes logs again that this node has lost, or that the user says are lost, as far as they are
/// protected by what is here: they are among `locked` then. What else is missing stays in
/// `missing`. Errors: io, where something cannot be got back, ...
Result<RebuildReport> rebuild_lost(const FileLogs& logs, const Options& options,
                                   std::vector<LeftLog>& locked,
                                   std::vector<const DirtyNotice*>& missing,
                                   ProgressPrinter& printer) {
  std::vector<ParityContents> parity;
  StoresByName left;
  for (const LeftLog& log : locked) {
    if (log.purpose == LogPurpose::data) {
      left[log.name] = log.store.get();
      continue;
    }
    auto contents = read_parity_log(*log.store, ReadDepth::payloads);
    // One that holds nothing was just begun.
    if (!contents && contents.error().kind == ErrorKind::no_such_file) continue;
    if (!contents) return tl::unexpected(contents.error());
    parity.push_back(std::move(*contents));
  }
  const auto known = protected_logs(parity);
  std::vector<std::string> names;
  Bytes all = 0;
  std::erase_if(missing, [&](const DirtyNotice* notice) {
    const auto log = known.find(notice->log);
    if (log == known.end()) return false;
    if (notice->host != this_host() && !options.says_lost(*notice)) return false;
    names.push_back(notice->log);
    all += log->second.bytes;
    return true;
  });
  if (names.empty() || (!missing.empty() && !options.partial)) return RebuildReport{};
  Bytes done = 0;
  auto rebuilt = rebuild_logs(logs.parity.front()->directory, parity, left, names,
                              options.skip_damage, [&](Bytes more) {
                                done += more;
                                printer.print("rebuild", logs.file.path, done, all);
                              });
  if (!rebuilt) return tl::unexpected(rebuilt.error());
  std::ranges::move(rebuilt->logs, std::back_inserter(locked));
  return std::move(rebuilt->report);
}

std::vector<const FoundLog*> all_of(const FileLogs& logs) {
  std::vector<const FoundLog*> all = logs.logs;
  all.insert(all.end(), logs.parity.begin(), logs.parity.end());
  return all;
}

Result<std::unique_ptr<StorageFile>> open_target(const FileLogs& logs, const Options& options,
                                                 Counters& counters) {
  if (options.into.empty()) {
    return open_posix_file(logs.file.path, OpenMode::read_write, counters);
  }
  Descriptor made(::open(options.into.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666));
  if (!made.valid()) return fail(errno, "make " + options.into);
  return open_posix_file(options.into, OpenMode::read_write, counters);
}

/// Logs by how often other programs have opened the file to write since: the oldest first.
using Turns = std::map<int, std::vector<LeftLog>, std::greater<>>;

/// What protects logs goes with the last.
Result<Turns> by_age(const Sidecar& sidecar, std::vector<LeftLog> logs) {
  const auto overtaken = overtaken_logs(sidecar);
  if (!overtaken) return tl::unexpected(overtaken.error());
  Turns turns;
  turns[0];
  for (LeftLog& log : logs) {
    const auto times = overtaken->find(log.name);
    turns[times == overtaken->end() ? 0 : times->second].push_back(std::move(log));
  }
  return turns;
}

void add(RecoveryReport& total, const RecoveryReport& part) {
  total.replay.records += part.replay.records;
  total.replay.record_bytes += part.replay.record_bytes;
  total.replay.written += part.replay.written;
  total.replay.truncations += part.replay.truncations;
  total.logs += part.logs;
  total.dropped_bytes += part.dropped_bytes;
  total.replayed_incomplete_bytes += part.replayed_incomplete_bytes;
  total.unusable_bytes += part.unusable_bytes;
  total.damage.insert(total.damage.end(), part.damage.begin(), part.damage.end());
}

/// Each of `turns` is recovered for itself: what comes later is newer, whatever the logs say.
/// Errors: those of recover(); a turn that came before is done then.
Result<RecoveryReport> recover_in_turn(StorageFile& file, Sidecar& sidecar, Turns turns,
                                       const RecoveryChoices& choices, bool drops_overtaken,
                                       const RecoveryProgress& progress) {
  RecoveryReport total;
  for (auto& [times, logs] : turns) {
    if (times > 0 && drops_overtaken) {
      if (auto dropped = drop(sidecar, logs); !dropped) return tl::unexpected(dropped.error());
      total.logs += static_cast<int>(logs.size());
      continue;
    }
    const auto report = recover(file, sidecar, std::move(logs), choices, progress);
    if (!report) return report;
    add(total, *report);
  }
  if (auto forgotten = forget_overtaken(sidecar); !forgotten) {
    return tl::unexpected(forgotten.error());
  }
  return total;
}

/// The notices of logs that are neither here nor, as a recovery that was interrupted says, in the
/// file already.
Result<std::vector<const DirtyNotice*>> missing_logs(const FileLogs& logs, const Sidecar& sidecar) {
  const auto replayed = sidecar.recovered();
  if (!replayed) return tl::unexpected(replayed.error());
  std::vector<const DirtyNotice*> missing = logs.missing;
  std::erase_if(missing, [&](const DirtyNotice* notice) {
    return std::ranges::find(*replayed, notice->log) != replayed->end();
  });
  return missing;
}

json recover_file(const FileLogs& logs, const Options& options, ProgressPrinter& printer) {
  json result = {{"file", logs.file.path}, {"error", nullptr}};
  Sidecar sidecar(logs.file.path);
  auto missing = missing_logs(logs, sidecar);
  if (!missing) return refused(result, "failed", to_string(missing.error()));
  if (logs.logs.empty() && logs.parity.empty() && !missing->empty()) {
    return refused(result, "elsewhere", "its logs are on other nodes, or lost");
  }
  if (in_use(logs)) return refused(result, "in use", "a running process writes it");
  const std::string state = file_state(logs.file);
  if (state != "there" && options.into.empty()) {
    return refused(result, state.c_str(), "the file that was written is not there any more");
  }
  auto locked = lock_all(all_of(logs));
  if (!locked) {
    const bool used = locked.error().kind == ErrorKind::exists;
    return refused(result, used ? "in use" : "failed", to_string(locked.error()));
  }
  const std::size_t before = locked->size();
  const auto rebuilt = rebuild_lost(logs, options, *locked, *missing, printer);
  if (!rebuilt) return refused(result, "failed", to_string(rebuilt.error()));
  result["rebuilt_logs"] = locked->size() - before;
  result["rebuilt_bytes"] = rebuilt->bytes;
  if (!missing->empty() && !options.partial) {
    return refused(result, "partial",
                   "other logs of the file are not here, and what they hold may be older or newer");
  }
  auto turns = by_age(sidecar, std::move(*locked));
  if (!turns) return refused(result, "failed", to_string(turns.error()));
  if (turns->size() > 1 && options.overtaken.empty()) {
    return refused(result, "overtaken",
                   "programs have opened it to write since these logs were left, and what the logs "
                   "hold may be older than what it holds now");
  }
  RecoveryChoices choices{
      .incomplete = {}, .skip_damage = options.skip_damage, .threads = options.threads};
  if (options.incomplete == "drop") choices.incomplete = Incomplete::drop;
  if (options.incomplete == "replay") choices.incomplete = Incomplete::replay;
  Bytes stored = 0;
  for (const FoundLog* log : logs.logs) stored += log->summary.contents.stored_bytes;
  Bytes checked = 0;
  const RecoveryProgress progress{
      .checked =
          [&](Bytes more) {
            checked += more;
            printer.print("check", logs.file.path, checked, stored);
          },
      .replayed = [&](Bytes done,
                      Bytes all) { printer.print("replay", logs.file.path, done, all); }};
  Counters counters;
  const auto file = open_target(logs, options, counters);
  if (!file) return refused(result, "failed", to_string(file.error()));
  const auto started = Clock::now();
  const auto report = recover_in_turn(**file, sidecar, std::move(*turns), choices,
                                      options.overtaken == "drop", progress);
  if (!report) {
    const bool asks = report.error().kind == ErrorKind::invalid_argument;
    return refused(result, asks ? "incomplete" : "failed", to_string(report.error()));
  }
  result.update(report_json(*report));
  for (const std::string& what : rebuilt->missing) result["damage"].push_back(what);
  result["state"] = "recovered";
  result["into"] = (*file)->path();
  result["seconds"] = std::chrono::duration<double>(Clock::now() - started).count();
  return result;
}

json drop_file(const FileLogs& logs) {
  json result = {{"file", logs.file.path},
                 {"error", nullptr},
                 {"logs", logs.logs.size() + logs.parity.size()}};
  if (in_use(logs)) return refused(result, "in use", "a running process writes it");
  auto locked = lock_all(all_of(logs));
  if (!locked) return refused(result, "failed", to_string(locked.error()));
  Sidecar sidecar(logs.file.path);
  if (auto dropped = drop(sidecar, *locked); !dropped) {
    return refused(result, "failed", to_string(dropped.error()));
  }
  // Notices of logs that this node has lost say nothing any more.
  for (const DirtyNotice* notice : logs.missing) {
    if (notice->host != this_host()) continue;
    if (auto withdrawn = sidecar.withdraw(notice->log); !withdrawn) {
      return refused(result, "failed", to_string(withdrawn.error()));
    }
  }
  if (auto forgotten = forget_overtaken(sidecar); !forgotten) {
    return refused(result, "failed", to_string(forgotten.error()));
  }
  result["state"] = "dropped";
  return result;
}

/// Logs of no file: those that hold nothing are removed, the others only if they were named.
json remove_nameless(const FoundLogs& found, bool unreadable_too) {
  json removed = json::array();
  for (const FoundLog& log : found.logs) {
    const std::string state = state_of(log.summary);
    if (state != "empty" && !(unreadable_too && state == "unreadable")) continue;
    auto store = LogDirectory::open(log.directory, log.summary.name, LogDirectory::Use::replace);
    if (store && (*store)->destroy()) removed.push_back(log.summary.path);
  }
  return removed;
}

/// What `each` makes of every one of `all`, in their order; up to `at_once` at a time.
template <typename Each>
json for_each_of(const std::vector<FileLogs>& all, int at_once, Each each) {
  std::vector<json> made(all.size());
  side_by_side(all.size(), at_once, [&](std::size_t at) { made[at] = each(all[at]); });
  return made;
}

template <typename Each>
void for_files(const FoundLogs& found, bool unreadable_too, int at_once, Each each) {
  json files = for_each_of(by_file(found), at_once, each);
  json unreadable = json::array();
  json removed = remove_nameless(found, unreadable_too);
  for (const FoundLog& log : found.logs) {
    if (state_of(log.summary) == "unreadable" && !unreadable_too) {
      unreadable.push_back(log_json(log));
    }
  }
  print_line({{"event", "result"},
              {"files", std::move(files)},
              {"removed", std::move(removed)},
              {"unreadable", std::move(unreadable)},
              {"problems", problems_json(found)}});
}

/// A log has up to 64 segments, each a file that is held open, and a file has many logs.
void allow_many_files() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

int run(int argc, char** argv) {
  Options options;
  CLI::App app("Looks at write-behind logs, and brings what is left of them to their files.",
               "forebay-cache");
  app.require_subcommand(1);
  const auto command = [&](const char* name, const char* help) {
    CLI::App* added = app.add_subcommand(name, help);
    added->add_option("--directory", options.selection.directories, "Node-local path")
        ->allow_extra_args(false);
    added->add_option("--file", options.selection.files, "Only logs of this file")
        ->allow_extra_args(false);
    return added;
  };
  CLI::App* list_command = command("list", "What is there");
  CLI::App* verify_command = command("verify", "The same, every checksum looked at");
  CLI::App* recover_command = command("recover", "Brings logs whose writer is gone to the files");
  CLI::App* drop_command = command("drop", "Removes them, and what they hold");
  // Not for recover: the order among all logs of a file counts.
  for (CLI::App* some : {list_command, verify_command, drop_command}) {
    some->add_option("--log", options.selection.names, "Only the log of this name")
        ->allow_extra_args(false);
  }
  recover_command->add_option("--incomplete", options.incomplete)
      ->check(CLI::IsMember({"drop", "replay"}));
  recover_command->add_option("--overtaken", options.overtaken)
      ->check(CLI::IsMember({"drop", "replay"}));
  recover_command->add_flag("--skip-damage", options.skip_damage);
  recover_command->add_flag("--partial", options.partial, "Also where other logs are elsewhere");
  recover_command
      ->add_option("--lost", options.lost,
                   "Node, or log, that is lost for good: rebuilt from what protects it")
      ->allow_extra_args(false);
  recover_command->add_option("--into", options.into, "Another file, which is made");
  recover_command->add_option("--threads", options.threads)->check(CLI::NonNegativeNumber);
  CLI11_PARSE(app, argc, argv);

  allow_many_files();
  if (list_command->parsed()) list(options, ReadDepth::headers);
  if (verify_command->parsed()) list(options, ReadDepth::payloads);
  if (recover_command->parsed()) {
    const FoundLogs found = find_logs(options.selection, ReadDepth::headers);
    ProgressPrinter printer;
    for_files(found, false, files_recovered_at_once,
              [&](const FileLogs& logs) { return recover_file(logs, options, printer); });
  }
  if (drop_command->parsed()) {
    FoundLogs found = find_logs(options.selection, ReadDepth::headers);
    found.interrupted.clear();  // There is nothing to lose.
    for_files(found, !options.selection.names.empty(), 1,
              [&](const FileLogs& logs) { return drop_file(logs); });
  }
  return 0;
}

}  // namespace
}  // namespace forebay

int main(int argc, char** argv) {
  try {
    return forebay::run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "forebay-cache: %s\n", error.what());
    return 1;
  }
}
