#pragma once

#include <chrono>
#include <cstdint>
#include <ctime>
#include <utility>

namespace forebay {

/// Nanoseconds of a clock that is never set.
inline std::int64_t steady_ns() {
  return std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// How long its thread has had a processor. Not for other threads.
class ThreadCpu {
 public:
  /// Since this was asked last, or made.
  std::int64_t take_ns() {
    const std::int64_t now = now_ns();
    return now - std::exchange(taken_ns_, now);
  }

 private:
  static std::int64_t now_ns() {
    timespec time{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return std::chrono::nanoseconds(std::chrono::seconds(time.tv_sec)).count() + time.tv_nsec;
  }

  std::int64_t taken_ns_ = now_ns();
};

}  // namespace forebay
