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
/// First everything goes to the log, little by little. If its device makes writers wait, and is
/// slow, what comes next goes to the file, for a quarter of a second: storage takes some in at once
/// for having been idle, so the first part of that does not count. If the file is faster, the log
/// gets a second chance. In the end everything goes to the log, or, where that lost, to the file
/// until whoever has the log gives it up. Thread-safe.
class LogTrial {
 public:
  enum class Way { log, file };
  /// A write, or the first part of one.
  struct Part {
    Way way = Way::log;
    Bytes bytes = 0;
    bool counts = false;  ///< It is timed.
  };

  explicit LogTrial(NanosecondClock clock) : clock_(std::move(clock)) {}

  /// Everything goes to the log.
  bool is_over() const { return stage_ == Stage::log; }

  /// Of `bytes` that are about to be written, how many go which way now. `log_only`: they must not
  /// go to the file. Waits for another thread's part while a log is looked at. ended() follows.
  Part begin(Bytes bytes, bool log_only);
  /// `waited`: it was on its way to a device that made its writer wait, as memory and page caches
  /// do not. Not `done`: it failed, as somebody else is told.
  void ended(const Part& part, bool done, bool waited);

  /// How fast both were, if the log is slower.
  std::optional<CachePace> lost() const;

 private:
  enum class Stage { first_look, file, second_look, log, lost };
  bool is_looking() const { return stage_ == Stage::first_look || stage_ == Stage::second_look; }
  void count_time();
  void look();
  void judge_file();

  const NanosecondClock clock_;
  std::atomic<Stage> stage_{Stage::first_look};
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  int under_way_ = 0;         ///< Parts that count. Guarded by mutex_, as is what follows.
  std::int64_t since_ = 0;    ///< Until when their time is counted.
  CachePace window_;          ///< Of the log, until it is judged.
  bool waited_ = false;       ///< In that.
  int slow_windows_ = 0;      ///< In a row.
  Bytes looked_ = 0;          ///< In this stage.
  std::int64_t file_ns_ = 0;  ///< Somebody was writing to the file.
  std::int64_t counted_from_ns_ =
      0;  ///< Of that, when what is taken in at once was over; 0: not yet.
  CachePace compared_;
};

}  // namespace forebay
