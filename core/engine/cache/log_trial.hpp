#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <utility>

#include "core/model/extent.hpp"
#include "core/model/nanosecond_clock.hpp"
#include "core/plan/cache_pace.hpp"

namespace forebay {

/// Finds out from the first bytes that are written whether a log is slower than its file. It goes
/// on from one file to the next of those whose logs lie below one path and which are on one file
/// system.
///
/// First everything goes to the log, little by little. If its device makes a writer wait, and is
/// slow, what comes next goes to the file, for 0.4 s, while the device is probed
/// (log_probe.hpp): storage takes some in at once for having been idle, so the first part of either
/// does not count. In the end everything goes to the log, or, where that lost, to the file until
/// whoever has the log gives it up. Thread-safe.
class LogTrial {
 public:
  enum class Way { log, file };
  /// A write, or the first part of one.
  struct Part {
    Way way = Way::log;
    Bytes bytes = 0;
    bool counts = false;  ///< It is timed.
  };

  explicit LogTrial(NanosecondClock clock);

  /// Everything goes to the log.
  bool is_over() const { return stage_ == Stage::log; }

  /// Of `bytes` that are about to be written, how many go which way now. `log_only`: they must not
  /// go to the file. Waits for another thread's part while a log is looked at. ended() follows.
  Part begin(Bytes bytes, bool log_only);
  /// `waited`: it was on its way to a device that made its writer wait, as memory and page caches
  /// do not. Not `done`: it failed, as somebody else is told.
  void ended(const Part& part, bool done, bool waited);

  /// Whether what was written to the file is to be made durable, between two writes, to see how
  /// fast it is.
  bool wants_sync() const;
  /// The same at the end of a file. A file system that took all in at once lets the close wait,
  /// which is no time of a write.
  bool wants_last_sync() const;
  /// Whether the caller, who is about to make the file durable, is to say how long that took. Each
  /// sync is asked for: what an untimed one made durable would seem to have taken no time.
  bool takes_sync();
  /// `done`: it is durable.
  void synced(std::int64_t ns, bool done);

  /// Whether the device is to be probed, and the caller is the one to do so, until it says that it
  /// does not any more: by unprobed(), or when probed() is false.
  bool takes_probe();
  /// The device took `bytes` in `ns`. False: that is enough of it.
  bool probed(Bytes bytes, std::int64_t ns, bool waited);
  /// `failed`: nothing can be said about the device.
  void unprobed(bool failed);
  std::int64_t now_ns() const { return clock_(); }

  /// How fast both were, if the log is slower.
  std::optional<CachePace> lost() const;

 private:
  enum class Stage { look, compare, log, lost };
  /// What a device took.
  struct Taken {
    Bytes bytes = 0;
    std::int64_t ns = 0;
    bool waited = false;
    bool is_slow() const { return waited && is_device_slow(bytes, ns); }
  };
  void count_time();
  void look(const Taken& taken);
  void count_file(Bytes bytes);
  void compare();
  bool log_is_seen() const;
  bool file_is_untold() const;

  const NanosecondClock clock_;
  std::atomic<Stage> stage_{Stage::look};
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  int under_way_ = 0;         ///< Parts that count. Guarded by mutex_, as is what follows.
  std::int64_t since_ = 0;    ///< Until when their time is counted.
  Taken looked_;              ///< Until there is enough of it.
  int slow_ = 0;              ///< Parts in a row.
  Bytes fast_ = 0;            ///< What the device took since it was slow.
  bool is_probed_ = false;    ///< By somebody, or enough.
  Bytes file_bytes_ = 0;      ///< Written to the file,
  std::int64_t file_ns_ = 0;  ///< in this time.
  std::int64_t counted_from_ns_ =
      0;                     ///< Of that, when what is taken in at once was over; 0: not yet.
  bool by_syncs_ = false;    ///< They tell of the file; compared_ is of the last one, then,
  bool is_syncing_ = false;  ///< which is under way,
  std::int64_t synced_from_ns_ = 0;  ///< and file_ns_ as that began.
  Bytes next_sync_;                  ///< When so much was written to the file.
  CachePace compared_;  ///< Without flushing_ns as long as too little is known of the file.
};

}  // namespace forebay
