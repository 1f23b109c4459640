#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <vector>

#include "core/engine/cache/dirty_map.hpp"
#include "core/engine/cache/flush_queue.hpp"
#include "core/model/error.hpp"
#include "core/model/extent.hpp"

namespace forebay {

/// What of a file is dirty, and whose turn it is: where writers, readers and the threads that flush
/// meet. Thread-safe.
///
/// No two writes to the file under way at a time touch the same unit, so an older one never lands
/// on a newer one. A piece stays dirty until its write returned, so a reader that finds it clean
/// finds it in the file. What is not committed is flushed only if somebody waits for it: else an
/// epoch that its writers did not finish could still be dropped.
///
/// A failed write stops flushing until somebody was told (take_failure, drain); the next attempt
/// starts from what is still dirty.
class DirtyExtents {
 public:
  /// Pieces of one unit to be written, ascending.
  struct Work {
    std::int64_t unit = 0;
    std::vector<DirtyMap::Piece> pieces;
  };
  /// What went through so far, in bytes.
  struct Totals {
    Bytes added = 0;
    Bytes written = 0;  ///< To the file. What was superseded before is not in it.
    Bytes dirty = 0;
    /// Of what was written: that which came to an end while more was waiting, and the time for
    /// which it was so.
    Bytes pressed = 0;
    std::int64_t pressed_ns = 0;
  };

  /// `background`: what is committed is handed out without anybody waiting for it, after a lull of
  /// that length, or after the longest burst (CacheOptions).
  DirtyExtents(FlushQueue queue, bool background,
               std::chrono::milliseconds lull = std::chrono::milliseconds(0),
               std::chrono::milliseconds longest_burst = std::chrono::milliseconds(0));

  // For writers. Orders rise.
  void add(Extent extent, std::uint64_t order, const LogPlace& place);
  /// What was added up to this order is whole.
  void commit(std::uint64_t order);
  /// Until each has had its end_access(), no lull ends: more is on its way, or ranks that wait for
  /// each other still write.
  void begin_access();
  void end_access();
  /// The failure of a write in the background that nobody was told of yet. Flushing goes on.
  std::optional<Error> take_failure();

  // For readers.
  std::vector<DirtyMap::Piece> overlapping(Extent extent) const;
  bool any(Extent extent) const;
  Bytes end() const;  ///< Behind the last dirty byte.
  Totals totals() const;

  // For the threads that flush.
  /// Waits for work, at most `patience`. No value: there is none, or stop() was called.
  std::optional<Work> take(std::chrono::milliseconds patience);
  void done(Work work, const Status& written);

  /// Flushes all up to this order, committed or not, and waits for it. Bytes are in the file, but
  /// not made durable there. Error: that of a write; what was not written stays dirty.
  Status drain(std::uint64_t order);
  /// The same for what is dirty in `extent` now.
  Status drain(Extent extent);
  std::uint64_t last_order() const;
  /// What is committed up to this order is handed out, though nobody waits for it.
  void begin_drain(std::uint64_t order);

  /// To be called before the file is made durable: every record up to this order has its bytes in
  /// the file, or has been superseded by one that has, or that is committed and will be found in
  /// the log. Once the file is durable, none of them need be kept.
  std::uint64_t begin_sync();
  /// What became of it. If the file was not made durable, what was written since the last time it
  /// was is dirty again: after a failed fsync nobody knows what of it is there (fsync(2)). One sync
  /// at a time.
  void end_sync(bool durable);

  void set_background(bool background);
  bool stopping() const;
  /// Nothing is dirty any more; who waits for a flush returns.
  void discard();
  void stop();

  /// As long as it lives, nothing is handed out, and nothing is under way.
  class Pause {
   public:
    explicit Pause(DirtyExtents& extents);
    ~Pause();
    Pause(const Pause&) = delete;
    Pause& operator=(const Pause&) = delete;
    /// Nothing from `size` on is dirty any more.
    void cut(Bytes size);

   private:
    DirtyExtents& extents_;
  };

 private:
  using Clock = std::chrono::steady_clock;
  bool handing_out() const;
  bool is_begun() const;
  Clock::time_point burst_end() const;
  bool in_burst() const { return lull_.count() > 0 && Clock::now() < burst_end(); }
  /// Who waits looks again by the end of the burst that is on, so when one begins it has to know.
  template <typename Change>
  void may_begin_burst(Change change);
  std::optional<Work> next();
  std::uint64_t flushed_through() const;
  std::uint64_t limit() const;
  void enqueue(std::int64_t unit);
  void note_pace(Bytes written);
  void note_superseded(std::uint64_t order, const std::vector<std::uint64_t>& superseded);

  mutable std::mutex mutex_;
  std::condition_variable work_;     ///< For who takes.
  std::condition_variable settled_;  ///< For who waits until something is done.
  DirtyMap map_;                     ///< Guarded by mutex_, as is what follows.
  FlushQueue queue_;
  bool background_;
  const std::chrono::milliseconds lull_;
  const std::chrono::milliseconds longest_burst_;
  Clock::time_point lull_end_;
  Clock::time_point latest_end_;  ///< Of the burst, whatever is written.
  int accesses_ = 0;
  bool stopping_ = false;
  int pauses_ = 0;
  std::multiset<std::uint64_t> awaited_;  ///< Orders up to which somebody waits.
  std::uint64_t begun_ = 0;               ///< Order up to which begin_drain() was called.
  std::set<std::int64_t> under_way_;      ///< Units.
  std::uint64_t last_order_ = 0;
  std::uint64_t committed_ = 0;
  std::optional<Error> failure_;  ///< Why flushing stands still.
  bool failure_told_ = false;
  Totals totals_;
  /// When a write ended last, if more was waiting then.
  std::optional<Clock::time_point> pressed_since_;
  DirtyMap written_;  ///< Not dirty any more and not durable yet.
  DirtyMap syncing_;  ///< The same, as begin_sync() found it.
  /// For each record that is not committed and lies over others: the oldest of them, directly or
  /// below what it lies over. If it is dropped, that one counts again.
  std::map<std::uint64_t, std::uint64_t> oldest_below_;
};

}  // namespace forebay
