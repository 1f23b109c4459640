#include "core/engine/cache/overtaken_logs.hpp"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <set>
#include <span>
#include <utility>

#include "core/engine/cache/sidecar_entry.hpp"
#include "core/storage/forwarding_file.hpp"

namespace forebay {
namespace {

constexpr std::string_view mark_ending = ".overtaken";
constexpr EntryKind mark_entry{"forebay overtaken logs", 1};

/// The logs that one mark names. None, if it was removed meanwhile.
Result<std::vector<std::string>> logs_of(const std::string& path) {
  // Anybody who may write the file may say that he has.
  const auto text = get_entry(path, false);
  if (!text) return tl::unexpected(text.error());
  if (!*text) return std::vector<std::string>{};
  const auto content = opened_entry(mark_entry, **text);
  if (!content) return fail_in(path, content.error());
  return listed_logs(*content);
}

/// Thread-safe.
class UntilOvertaken final : public ForwardingFile {
 public:
  UntilOvertaken(std::unique_ptr<StorageFile> file, Sidecar sidecar,
                 std::map<std::string, int> logs, std::chrono::milliseconds interval)
      : ForwardingFile(std::move(file)),
        sidecar_(std::move(sidecar)),
        logs_(std::move(logs)),
        interval_(interval) {}

  Status write_pieces(std::span<const iovec> pieces, Bytes offset) override {
    if (auto clear = look(); !clear) return clear;
    return ForwardingFile::write_pieces(pieces, offset);
  }
  Status resize(Bytes size) override {
    if (auto clear = look(); !clear) return clear;
    return ForwardingFile::resize(size);
  }
  Status allocate(Bytes size) override {
    if (auto clear = look(); !clear) return clear;
    return ForwardingFile::allocate(size);
  }
  void lengthen(Bytes size) override {
    if (look()) ForwardingFile::lengthen(size);
  }

 private:
  using Clock = std::chrono::steady_clock;

  /// One thread looks; the others go by what was seen before.
  Status look() {
    const std::unique_lock lock(mutex_, std::try_to_lock);
    if (lock && !overtaken_ && Clock::now() >= next_) {
      const auto begun = Clock::now();
      const auto now = overtaken_logs(sidecar_);
      if (!now) return tl::unexpected(now.error());
      overtaken_ = std::ranges::any_of(*now, [this](const auto& marked) {
        const auto log = logs_.find(marked.first);
        return log != logs_.end() && marked.second > log->second;
      });
      // There is a notice of each rank, and the file system may be slow.
      constexpr int times_longer = 10;
      const auto took = Clock::now() - begun;
      next_ = begun + took + std::max<Clock::duration>(interval_, times_longer * took);
    }
    if (!overtaken_) return {};
    return tl::unexpected(
        Error{ErrorKind::exists, 0, "a program has opened the file to write meanwhile"});
  }

  const Sidecar sidecar_;
  const std::map<std::string, int> logs_;
  const std::chrono::milliseconds interval_;
  std::atomic<bool> overtaken_{false};
  std::mutex mutex_;
  Clock::time_point next_{};  ///< Guarded by mutex_.
};

}  // namespace

std::unique_ptr<StorageFile> until_overtaken(std::unique_ptr<StorageFile> file, Sidecar sidecar,
                                             std::map<std::string, int> logs,
                                             std::chrono::milliseconds interval) {
  return std::make_unique<UntilOvertaken>(std::move(file), std::move(sidecar), std::move(logs),
                                          interval);
}

Result<std::map<std::string, int>> overtaken_logs(const Sidecar& sidecar) {
  std::map<std::string, int> times;
  const auto marks = entries_that_end(sidecar.path(), mark_ending);
  if (!marks) return tl::unexpected(marks.error());
  for (const std::string& mark : *marks) {
    const auto logs = logs_of(sidecar.path() + "/" + mark);
    if (!logs) return tl::unexpected(logs.error());
    for (const std::string& log : *logs) ++times[log];
  }
  return times;
}

Status mark_overtaken(const Sidecar& sidecar, const std::string& by,
                      const std::vector<std::string>& logs, bool anew) {
  const auto known = overtaken_logs(sidecar);
  if (!known) return tl::unexpected(known.error());
  const auto is_known = [&](const std::string& log) { return known->contains(log); };
  if (!anew && std::ranges::all_of(logs, is_known)) return {};
  return put_entry(sidecar.path(), by + std::string(mark_ending),
                   sealed_entry(mark_entry, {{"logs", logs}}), true);
}

Status forget_overtaken(const Sidecar& sidecar) {
  const auto marks = entries_that_end(sidecar.path(), mark_ending);
  if (!marks) return tl::unexpected(marks.error());
  if (marks->empty()) return {};
  const auto notices = sidecar.read();
  if (!notices) return tl::unexpected(notices.error());
  std::set<std::string> there(notices->unread.begin(), notices->unread.end());
  for (const DirtyNotice& notice : notices->notices) there.insert(notice.log);
  for (const std::string& mark : *marks) {
    const auto logs = logs_of(sidecar.path() + "/" + mark);
    if (!logs) return tl::unexpected(logs.error());
    if (std::ranges::any_of(*logs, [&](const auto& log) { return there.contains(log); })) continue;
    if (auto removed = remove_entry(sidecar.path(), mark); !removed) return removed;
  }
  return {};
}

}  // namespace forebay
