#pragma once

#include <chrono>
#include <cstdint>
#include <mutex>

namespace forebay {

/// For how long anybody was at work: threads that work at the same time count once. Thread-safe.
class BusyTime {
 public:
  using Clock = std::chrono::steady_clock;

  /// Somebody works from `now` on. Each begin() has its end().
  void begin(Clock::time_point now) {
    const std::scoped_lock lock(mutex_);
    if (workers_++ == 0) since_ = now;
  }
  void end(Clock::time_point now) {
    const std::scoped_lock lock(mutex_);
    if (--workers_ == 0) total_ += now - since_;
  }
  /// Works as long as it lives.
  class Worker {
   public:
    explicit Worker(BusyTime& busy) : busy_(busy) { busy_.begin(Clock::now()); }
    ~Worker() { busy_.end(Clock::now()); }
    Worker(const Worker&) = delete;
    Worker& operator=(const Worker&) = delete;

   private:
    BusyTime& busy_;
  };

  /// Without what still goes on.
  std::int64_t nanoseconds() const {
    const std::scoped_lock lock(mutex_);
    return std::chrono::duration_cast<std::chrono::nanoseconds>(total_).count();
  }

 private:
  mutable std::mutex mutex_;
  int workers_ = 0;          ///< Guarded by mutex_, as is what follows.
  Clock::time_point since_;  ///< When the first of them began.
  Clock::duration total_{0};
};

}  // namespace forebay
