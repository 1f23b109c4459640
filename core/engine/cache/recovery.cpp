#include "core/engine/cache/recovery.hpp"

#include <algorithm>
#include <filesystem>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

#include "core/engine/cache/begun_log.hpp"
#include "core/engine/cache/emulated_node.hpp"
#include "core/engine/cache/flush_mark.hpp"
#include "core/engine/cache/log_contents.hpp"

namespace forebay {
namespace {

constexpr int most_readers = 16;

/// Checksums and copies keep a processor busy.
int readers() {
  return std::clamp(static_cast<int>(std::thread::hardware_concurrency()), 1, most_readers);
}

/// Nobody replays it any more.
Status let_go(const LeftLog& log, bool keep) {
  // Marked, one that was only begun would hold something, which cannot be read.
  if (!keep || is_only_begun(*log.store)) return log.store->destroy();
  if (log.purpose == LogPurpose::protection) return {};
  if (log.remade != nullptr) {
    if (auto destroyed = log.remade->destroy(); !destroyed) return destroyed;
  }
  auto mark = FlushMark::open(*log.store);
  if (!mark) return tl::unexpected(mark.error());
  return mark->put(all_flushed);
}

/// The notice goes last: as long as there is a log, the file is said to be incomplete.
Status finish(Sidecar& sidecar, const LeftLog& log, bool keep) {
  if (auto gone = let_go(log, keep); !gone) return gone;
  return sidecar.withdraw(log.name);
}

/// Recoveries that were interrupted: those of another node, or of directories that are not looked
/// at, are not ours to finish.
class Interrupted {
 public:
  Interrupted(Sidecar& sidecar, SaidLost lost) : sidecar_(sidecar), lost_(std::move(lost)) {}

  /// Takes the logs that they had replayed out of `logs`.
  Status finish(std::vector<LeftLog>& logs, bool keep) {
    auto recoveries = sidecar_.recoveries();
    if (!recoveries) return tl::unexpected(recoveries.error());
    if (recoveries->empty()) return {};
    auto notices = sidecar_.read();
    if (!notices) return tl::unexpected(notices.error());
    notices_ = std::move(*notices);
    for (const auto& [name, note] : *recoveries) {
      const auto finished = finish(note, logs, keep);
      if (!finished) return tl::unexpected(finished.error());
      if (!*finished) continue;
      if (auto forgotten = sidecar_.forget_recovery(name); !forgotten) return forgotten;
    }
    return {};
  }

  int finished() const { return finished_; }
  std::vector<UnfinishedLog> unfinished() const { return unfinished_; }

 private:
  /// False: something of it is left.
  Result<bool> finish(const RecoveryNote& note, std::vector<LeftLog>& logs, bool keep) {
    bool all = true;
    for (const RecoveredLog& replayed : note.logs) {
      const auto log = std::ranges::find(logs, replayed.name, &LeftLog::name);
      if (log != logs.end()) {
        if (auto gone = let_go(*log, keep); !gone) return tl::unexpected(gone.error());
        logs.erase(log);
        ++finished_;
      } else if (const auto place = place_of(note, replayed);
                 place && !is_gone(*place, replayed.name)) {
        unfinished_.push_back(*place);
        all = false;
        continue;
      }
      if (auto withdrawn = sidecar_.withdraw(replayed.name); !withdrawn) {
        return tl::unexpected(withdrawn.error());
      }
    }
    return all;
  }

  /// Where the log was; version 1 left that to its notice, which goes after the log. No value: it
  /// is gone.
  std::optional<UnfinishedLog> place_of(const RecoveryNote& note, const RecoveredLog& log) const {
    if (!note.host.empty()) return UnfinishedLog{note.host, log.path()};
    const auto notice = std::ranges::find(notices_.notices, log.name, &DirtyNotice::log);
    if (notice == notices_.notices.end()) return std::nullopt;
    return UnfinishedLog{notice->host, notice->log_path};
  }

  bool is_gone(const UnfinishedLog& place, const std::string& log) const {
    if (lost_.names(place.host, log)) return true;
    std::error_code unknown;
    return on_this_host(place.host) && !std::filesystem::exists(place.path, unknown) && !unknown;
  }

  Sidecar& sidecar_;
  const SaidLost lost_;
  Sidecar::Notices notices_;
  int finished_ = 0;
  std::vector<UnfinishedLog> unfinished_;
};

RecoveryNote note_of(const std::vector<LeftLog>& logs) {
  RecoveryNote note;
  note.host = this_host();
  for (const LeftLog& log : logs) {
    note.logs.push_back(
        {log.name, std::filesystem::path(log.store->path()).parent_path().string()});
  }
  return note;
}

/// All that they hold is in the file.
Status finish_all(Sidecar& sidecar, const std::vector<LeftLog>& logs, bool keep) {
  if (logs.empty()) return {};
  const auto noted = sidecar.note_recovered(note_of(logs));
  // One log may be replayed again; of several some must not be without the others.
  if (!noted && logs.size() > 1) return tl::unexpected(noted.error());
  for (const LeftLog& log : logs) {
    if (auto done = finish(sidecar, log, keep); !done) return done;
  }
  return noted ? sidecar.forget_recovery(*noted) : Status();
}

/// Of several files that are recovered at once, the logs of one after the other: each reading keeps
/// all processors busy, and what was read for the one before is written meanwhile.
std::vector<Result<LogContents>> read_in_turn(std::span<const LogParts> logs,
                                              const ScanProgress& progress) {
  static std::mutex turn;
  const std::scoped_lock lock(turn);
  return read_logs(logs, ReadDepth::payloads, readers(), progress);
}

/// What data logs hold, in their order, without those that hold nothing; of these `begun` gets the
/// paths of those that were only begun.
Result<std::vector<LogContents>> contents_of(std::vector<LeftLog>& logs,
                                             std::vector<std::string>& begun,
                                             const ScanProgress& progress) {
  std::vector<LogParts> unread;
  for (const LeftLog& log : logs) {
    if (log.purpose == LogPurpose::protection || log.contents) continue;
    unread.push_back({log.store.get(), log.remade.get()});
  }
  auto all_read = read_in_turn(unread, progress);
  auto next = all_read.begin();
  std::vector<LogContents> contents;
  for (LeftLog& log : logs) {
    if (log.purpose == LogPurpose::protection) continue;
    if (log.contents) {
      contents.push_back(std::move(*log.contents));
      log.contents.reset();
      continue;
    }
    auto read = std::move(*next++);
    // One that holds nothing was just begun, or is removed in part.
    if (!read && read.error().kind == ErrorKind::no_such_file) continue;
    if (!read && read.error().kind == ErrorKind::io && log.remade == nullptr &&
        is_only_begun(*log.store)) {
      begun.push_back(log.store->path());
      continue;
    }
    if (!read) return tl::unexpected(read.error());
    contents.push_back(std::move(*read));
  }
  return contents;
}

/// What was chosen settles what is to be done with all of them.
Status decided(const std::vector<LogContents>& contents, const RecoveryChoices& choices) {
  if (choices.incomplete) return {};
  const auto open = std::ranges::find_if(
      contents, [](const LogContents& log) { return !log.incomplete.empty(); });
  if (open == contents.end()) return {};
  return tl::unexpected(Error{ErrorKind::invalid_argument, 0,
                              "the log " + open->identity.log +
                                  " ends with records of an access that was not finished, and it "
                                  "was not said whether to drop or to replay them"});
}

}  // namespace

bool SaidLost::names(const std::string& host, const std::string& log) const {
  return std::ranges::any_of(
      words, [&](const std::string& word) { return word == "all" || word == host || word == log; });
}

Result<RecoveryReport> recover(StorageFile& file, Sidecar& sidecar, std::vector<LeftLog> logs,
                               const RecoveryChoices& choices, const RecoveryProgress& progress) {
  std::vector<std::string> names;
  names.reserve(logs.size());
  for (const LeftLog& log : logs) names.push_back(log.name);
  Interrupted interrupted(sidecar, choices.lost);
  if (auto finished = interrupted.finish(logs, choices.keep); !finished) {
    return tl::unexpected(finished.error());
  }
  std::stable_partition(logs.begin(), logs.end(),
                        [](const LeftLog& log) { return log.purpose == LogPurpose::protection; });
  RecoveryReport report;
  auto read = contents_of(logs, report.begun, progress.checked);
  if (!read) return tl::unexpected(read.error());
  std::vector<LogContents> contents = std::move(*read);
  if (auto clear = decided(contents, choices); !clear) return tl::unexpected(clear.error());

  const Incomplete incomplete = choices.incomplete.value_or(Incomplete::drop);
  for (const LogContents& log : contents) {
    (incomplete == Incomplete::drop ? report.dropped_bytes : report.replayed_incomplete_bytes) +=
        log.incomplete_bytes();
    report.unusable_bytes += log.beyond_gap_bytes;
    for (const LogDamage& damage : log.damage) report.damage.push_back(damage.what);
  }
  auto replayed = replay(
      file, contents,
      {.incomplete = incomplete, .skip_damage = choices.skip_damage, .threads = choices.threads},
      progress.replayed);
  if (!replayed) return tl::unexpected(replayed.error());
  report.replay = *replayed;
  contents.clear();  // Their segments are open.

  if (auto done = finish_all(sidecar, logs, choices.keep); !done) {
    return tl::unexpected(done.error());
  }
  if (auto tidied = sidecar.tidy(names); !tidied) return tl::unexpected(tidied.error());
  report.logs = interrupted.finished() + static_cast<int>(logs.size());
  report.unfinished = interrupted.unfinished();
  if (choices.keep) report.kept = report.logs - static_cast<int>(report.begun.size());
  return report;
}

Status drop(Sidecar& sidecar, std::span<const LeftLog> logs, bool keep) {
  for (const LeftLog& log : logs) {
    if (auto gone = finish(sidecar, log, keep); !gone) return gone;
  }
  std::vector<LeftLog> none;
  return Interrupted(sidecar, {}).finish(none, keep);
}

}  // namespace forebay
