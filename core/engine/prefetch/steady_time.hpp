#pragma once

#include <chrono>
#include <cstdint>
#include <ctime>

namespace forebay {

/// Nanoseconds of a clock that is never set.
inline std::int64_t steady_ns() {
  return std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// Nanoseconds that the calling thread had a processor.
inline std::int64_t thread_cpu_ns() {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return std::chrono::nanoseconds(std::chrono::seconds(time.tv_sec)).count() + time.tv_nsec;
}

}  // namespace forebay
