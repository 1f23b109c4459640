// forebay-cache: looks at write-behind logs, and brings what is left of them to their files. It is
// what `forebay cache` runs; it asks nobody and prints JSON lines: progress, then one result.

#include <sys/resource.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "core/engine/cache/begun_log.hpp"
#include "core/engine/cache/log_segment.hpp"
#include "core/engine/cache/overtaken_logs.hpp"
#include "core/engine/cache/side_by_side.hpp"
#include "toolkit/native/cache_json.hpp"
#include "toolkit/native/progress_printer.hpp"
#include "toolkit/native/recover_file.hpp"

namespace forebay {
namespace {

using nlohmann::json;

/// While the logs of one file are read, and the notices of another are withdrawn, one call after
/// another, the servers are busy with others.
constexpr int files_recovered_at_once = 4;

/// Of several files that had one name one after the other, which is to be written to another one:
/// that of which logs were made first, but for the one that is there and needs no other.
FileIdentity first_of(const std::vector<FileLogs>& files, const std::string& path) {
  std::optional<std::pair<std::pair<bool, std::int64_t>, FileIdentity>> first;
  for (const FileLogs& logs : files) {
    if (logs.file.path != path || logs.all().empty()) continue;
    std::int64_t made = std::numeric_limits<std::int64_t>::max();
    for (const FoundLog* log : logs.all()) {
      if (!log->summary.readable) continue;
      made = std::min(made, log->summary.contents.identity.made_unix_s);
    }
    const std::pair age(file_state(logs.file) == "there", made);
    if (!first || age < first->first) first.emplace(age, logs.file);
  }
  return first ? first->second : FileIdentity{};
}

json recover_one_of(const std::vector<FileLogs>& files, const FileLogs& logs,
                    const RecoverOptions& options, ProgressPrinter& printer) {
  if (options.into.empty()) return recover_file(logs, options, printer);
  if (logs.all().empty()) {  // What an interrupted recovery left needs no other file.
    RecoverOptions alone = options;
    alone.into.clear();
    return recover_file(logs, alone, printer);
  }
  if (logs.file == first_of(files, logs.file.path)) return recover_file(logs, options, printer);
  return refused({{"file", logs.file.path}, {"error", nullptr}}, "another",
                 "these logs are of another file of this name");
}

json problems_json(const FoundLogs& found) {
  json problems = json::array();
  for (const LogProblem& problem : found.problems) problems.push_back(problem_json(problem));
  return problems;
}

void list(const FoundLogs& found) {
  json logs = json::array();
  for (const FoundLog& log : found.logs) logs.push_back(log_json(log));
  json missing = json::array();
  for (const MissingLog& log : found.missing) missing.push_back(missing_json(log));
  print_line({{"event", "result"},
              {"logs", std::move(logs)},
              {"missing", std::move(missing)},
              {"problems", problems_json(found)}});
}

FoundLogs verify(const LogSelection& selection) {
  Bytes stored = 0;
  for (const FoundLog& log : find_logs(selection, ReadDepth::headers).logs) {
    stored += log.summary.contents.stored_bytes;
  }
  ProgressPrinter printer;
  Bytes checked = 0;
  FoundLogs found = find_logs(selection, ReadDepth::payloads, [&](Bytes more) {
    // Programs may still write, and new ones begin.
    checked = std::clamp<Bytes>(checked + more, 0, std::max<Bytes>(stored - 1, 0));
    printer.print("check", "", checked, stored);
  });
  if (checked > 0) printer.print("check", "", stored, stored);
  return found;
}

json drop_file(const FileLogs& logs) {
  json result = {{"file", logs.file.path}, {"error", nullptr}, {"logs", logs.all().size()}};
  if (logs.in_use()) return refused(result, "in use", "a running process writes it");
  auto locked = lock_all(logs.all());
  if (!locked) return refused(result, "failed", to_string(locked.error()));
  Sidecar sidecar(logs.file.path);
  if (auto dropped = drop(sidecar, *locked); !dropped) {
    return refused(result, "failed", to_string(dropped.error()));
  }
  // Notices of logs that this node has lost say nothing any more.
  for (const MissingLog* log : logs.missing) {
    if (!log->is_lost) continue;
    if (auto withdrawn = Sidecar(log->beside).withdraw(log->notice.log); !withdrawn) {
      return refused(result, "failed", to_string(withdrawn.error()));
    }
  }
  if (auto forgotten = forget_overtaken(sidecar); !forgotten) {
    return refused(result, "failed", to_string(forgotten.error()));
  }
  result["state"] = "dropped";
  return result;
}

/// Its program may have written since it was looked at, and have been killed.
bool holds_nothing_yet(LogStore& log) {
  const auto has_some = has_segments(log);
  return has_some && (!*has_some || is_only_begun(log));
}

/// Logs of no file: those that hold nothing are removed, the others only if they were named.
json remove_nameless(const FoundLogs& found, bool unreadable_too) {
  json removed = json::array();
  for (const FoundLog& log : found.logs) {
    if (log.notice) continue;
    const std::string state = state_of(log.summary);
    const bool is_unreadable = state == "unreadable";
    if (state != "empty" && state != "begun" && !(unreadable_too && is_unreadable)) continue;
    auto store = LogDirectory::open(log.directory, log.summary.name, LogDirectory::Use::replace);
    if (!store || !(is_unreadable || holds_nothing_yet(**store))) continue;
    if ((*store)->destroy()) removed.push_back(log.summary.path);
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
void for_files(const FoundLogs& found, const std::vector<FileLogs>& all, bool unreadable_too,
               int at_once, Each each) {
  json files = for_each_of(all, at_once, each);
  json unreadable = json::array();
  json removed = remove_nameless(found, unreadable_too);
  for (const FoundLog& log : found.logs) {
    std::error_code ignored;
    const bool there = std::filesystem::exists(log.summary.path, ignored);  // It may be rebuilt.
    if (there && state_of(log.summary) == "unreadable") unreadable.push_back(log_json(log));
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
  LogSelection selection;
  RecoverOptions options;
  CLI::App app("Looks at write-behind logs, and brings what is left of them to their files.",
               "forebay-cache");
  app.require_subcommand(1);
  const auto command = [&](const char* name, const char* help) {
    CLI::App* added = app.add_subcommand(name, help);
    added->add_option("--directory", selection.directories, "Node-local path")
        ->allow_extra_args(false);
    added->add_option("--file", selection.files, "Only logs of this file")->allow_extra_args(false);
    return added;
  };
  CLI::App* list_command = command("list", "What is there");
  CLI::App* verify_command = command("verify", "The same, every checksum looked at");
  CLI::App* recover_command = command("recover", "Brings logs whose writer is gone to the files");
  CLI::App* drop_command = command("drop", "Removes them, and what they hold");
  // Not for recover: the order among all logs of a file counts.
  for (CLI::App* some : {list_command, verify_command, drop_command}) {
    some->add_option("--log", selection.names, "Only the log of this name")
        ->allow_extra_args(false);
  }
  recover_command->add_option("--incomplete", options.incomplete)
      ->check(CLI::IsMember({"drop", "replay"}));
  recover_command->add_option("--overtaken", options.overtaken)
      ->check(CLI::IsMember({"drop", "replay"}));
  recover_command->add_flag("--skip-damage", options.choices.skip_damage);
  recover_command->add_flag("--partial", options.choices.partial,
                            "Also where other logs are elsewhere");
  recover_command
      ->add_option("--lost", options.choices.lost.words,
                   "Node, or log, that is lost for good: rebuilt from what protects it")
      ->allow_extra_args(false);
  CLI::Option* into =
      recover_command->add_option("--into", options.into, "Another file, new or empty");
  recover_command
      ->add_flag("--further", options.further, "An earlier recovery began to write that one")
      ->needs(into);
  recover_command->add_option("--threads", options.threads)->check(CLI::NonNegativeNumber);
  CLI11_PARSE(app, argc, argv);

  allow_many_files();
  if (list_command->parsed()) list(find_logs(selection, ReadDepth::headers));
  if (verify_command->parsed()) list(verify(selection));
  if (recover_command->parsed()) {
    const FoundLogs found = find_logs(selection, ReadDepth::headers);
    const std::vector<FileLogs> files = by_file(found);
    ProgressPrinter printer;
    for_files(found, files, false, files_recovered_at_once,
              [&](const FileLogs& logs) { return recover_one_of(files, logs, options, printer); });
  }
  if (drop_command->parsed()) {
    FoundLogs found = find_logs(selection, ReadDepth::headers);
    found.interrupted.clear();  // There is nothing to lose.
    for_files(found, by_file(found), !selection.names.empty(), 1,
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
