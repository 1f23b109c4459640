#include "core/engine/cache/recovery.hpp"

#include <algorithm>
#include <thread>
#include <utility>

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
  if (!keep) return log.store->destroy();
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

/// Finishes those that an interrupted recovery had replayed, and returns how many that were.
Result<int> finish_interrupted(Sidecar& sidecar, std::vector<LeftLog>& logs, bool keep) {
  const auto replayed = sidecar.recovered();
  if (!replayed) return tl::unexpected(replayed.error());
  const auto rest = std::stable_partition(logs.begin(), logs.end(), [&](const LeftLog& log) {
    return std::ranges::find(*replayed, log.name) != replayed->end();
  });
  for (auto log = logs.begin(); log != rest; ++log) {
    if (auto gone = let_go(*log, keep); !gone) return tl::unexpected(gone.error());
  }
  const int removed = static_cast<int>(rest - logs.begin());
  logs.erase(logs.begin(), rest);
  for (const std::string& name : *replayed) {
    if (auto withdrawn = sidecar.withdraw(name); !withdrawn) {
      return tl::unexpected(withdrawn.error());
    }
  }
  return removed;
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

Result<RecoveryReport> recover(StorageFile& file, Sidecar& sidecar, std::vector<LeftLog> logs,
                               const RecoveryChoices& choices, const RecoveryProgress& progress) {
  const auto finished = finish_interrupted(sidecar, logs, choices.keep);
  if (!finished) return tl::unexpected(finished.error());
  std::stable_partition(logs.begin(), logs.end(),
                        [](const LeftLog& log) { return log.purpose == LogPurpose::protection; });
  std::vector<LogParts> parts;
  for (const LeftLog& log : logs) {
    if (log.purpose == LogPurpose::protection) continue;
    parts.push_back({log.store.get(), log.remade.get()});
  }
  std::vector<LogContents> contents;
  for (auto& read : read_logs(parts, ReadDepth::payloads, readers(), progress.checked)) {
    // One that holds nothing was just begun, or is removed in part.
    if (!read && read.error().kind == ErrorKind::no_such_file) continue;
    if (!read) return tl::unexpected(read.error());
    contents.push_back(std::move(*read));
  }
  if (auto clear = decided(contents, choices); !clear) return tl::unexpected(clear.error());

  RecoveryReport report;
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

  std::vector<std::string> names;
  names.reserve(logs.size());
  for (const LeftLog& log : logs) names.push_back(log.name);
  if (!names.empty()) {
    auto noted = sidecar.note_recovered(names);
    // One log may be replayed again; of several some must not be without the others.
    if (!noted && names.size() > 1) return tl::unexpected(noted.error());
  }
  for (const LeftLog& log : logs) {
    if (auto done = finish(sidecar, log, choices.keep); !done) return tl::unexpected(done.error());
  }
  if (auto forgotten = sidecar.forget_recovered(names); !forgotten) {
    return tl::unexpected(forgotten.error());
  }
  report.logs = *finished + static_cast<int>(logs.size());
  if (choices.keep) report.kept = report.logs;
  return report;
}

Status drop(Sidecar& sidecar, std::span<const LeftLog> logs, bool keep) {
  for (const LeftLog& log : logs) {
    if (auto gone = finish(sidecar, log, keep); !gone) return gone;
  }
  return {};
}

}  // namespace forebay
