#include "core/engine/cache/replay.hpp"

#include <algorithm>
#include <mutex>
#include <set>
#include <tuple>
#include <utility>

#include "core/engine/cache/dirty_extents.hpp"
#include "core/engine/cache/flusher.hpp"

namespace forebay {
namespace {

constexpr Bytes largest_write = 4 * MiB;
constexpr int most_threads = 16;

/// One record in the order of all logs.
struct Step {
  const LogEntry* entry = nullptr;
  std::size_t log = 0;
  int rank = 0;

  auto order() const { return std::tuple(entry->record.epoch, rank, log, entry->record.sequence); }
};

std::vector<Step> steps_of(std::span<const LogContents> logs, Incomplete incomplete) {
  std::vector<Step> steps;
  for (std::size_t log = 0; log < logs.size(); ++log) {
    const auto add = [&](const std::vector<LogEntry>& entries) {
      for (const LogEntry& entry : entries) steps.push_back({&entry, log, logs[log].identity.rank});
    };
    add(logs[log].complete);
    if (incomplete == Incomplete::replay) add(logs[log].incomplete);
  }
  std::sort(steps.begin(), steps.end(),
            [](const Step& a, const Step& b) { return a.order() < b.order(); });
  return steps;
}

Status undamaged(std::span<const LogContents> logs) {
  std::string what;
  for (const LogContents& log : logs) {
    for (const LogDamage& damage : log.damage) {
      if (!what.empty()) what += "; ";
      what += damage.what;
    }
  }
  if (what.empty()) return {};
  return tl::unexpected(Error{ErrorKind::io, 0, std::move(what)});
}

/// Cuts the file if it is longer.
Result<bool> cut_file(StorageFile& file, Bytes size) {
  const auto now = file.size();
  if (!now) return tl::unexpected(now.error());
  if (*now <= size) return false;
  if (auto cut = file.resize(size); !cut) return tl::unexpected(cut.error());
  return true;
}

}  // namespace

Result<ReplayReport> replay(StorageFile& file, std::span<const LogContents> logs,
                            const ReplayChoices& choices, const ReplayProgress& progress) {
  if (!choices.skip_damage) {
    if (auto whole = undamaged(logs); !whole) return tl::unexpected(whole.error());
  }
  const std::vector<Step> steps = steps_of(logs, choices.incomplete);
  std::set<std::pair<std::size_t, std::uint64_t>> cuts_done;  // By log and sequence number.
  for (const Step& step : steps) {
    const LogRecord& record = step.entry->record;
    if (record.kind == RecordKind::truncated) cuts_done.emplace(step.log, record.value);
  }

  // What is newest of every byte is found first, so that it is all that is written.
  ReplayReport report;
  const StripeLayout layout = file.layout();
  DirtyExtents extents({layout, largest_write, 0}, false);
  std::uint64_t order = 0;
  for (const Step& step : steps) {
    const LogRecord& record = step.entry->record;
    ++order;
    if (record.kind == RecordKind::data) {
      extents.add(record.extent(), order, step.entry->place);
      ++report.records;
      report.record_bytes += record.length;
    } else if (record.kind == RecordKind::truncate) {
      const auto size = static_cast<Bytes>(record.value);
      DirtyExtents::Pause(extents).cut(size);
      if (cuts_done.contains({step.log, record.sequence})) continue;
      const auto cut = cut_file(file, size);
      if (!cut) return tl::unexpected(cut.error());
      report.truncations += *cut ? 1 : 0;
    }
  }

  file.lengthen(extents.end());
  const Bytes all = extents.totals().dirty;
  std::mutex progress_mutex;
  const auto wrote = [&](Extent extent) {
    // The device is at work while the rest is copied, not only once the file is to be durable.
    file.start_writeback(extent);
    if (!progress) return;
    const std::scoped_lock lock(progress_mutex);
    progress(extents.totals().written, all);
  };
  const int threads =
      choices.threads > 0 ? choices.threads : std::clamp(2 * layout.servers, 2, most_threads);
  {
    const Flusher flusher(extents, file, threads, {.wrote = wrote});
    if (!flusher.begun()) return tl::unexpected(flusher.begun().error());
    if (auto drained = extents.drain(order); !drained) return tl::unexpected(drained.error());
  }
  if (auto synced = file.sync(); !synced) return tl::unexpected(synced.error());
  report.written = extents.totals().written;
  return report;
}

}  // namespace forebay
