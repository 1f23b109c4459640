#pragma once

#include <pthread.h>

#include <chrono>
#include <cstdint>
#include <ctime>
#include <mutex>

namespace forebay {

/// Locks `mutex` as soon as it can within `longest`: whoever holds it may wait for a file server
/// that never answers. In two waits: of a process that was stopped meanwhile one may be over before
/// whoever holds the lock goes on. Not by std::timed_mutex, whose calls ThreadSanitizer does not
/// know.
inline std::unique_lock<std::mutex> lock_within(std::mutex& mutex, std::chrono::seconds longest) {
  constexpr int waits = 2;
  constexpr std::int64_t ns_per_s = 1'000'000'000;
  const std::int64_t each_ns = longest.count() * ns_per_s / waits;
  for (int wait = 0; wait < waits; ++wait) {
    timespec until{};
    ::clock_gettime(CLOCK_REALTIME, &until);
    const std::int64_t ns = until.tv_nsec + each_ns;
    until.tv_sec += ns / ns_per_s;
    until.tv_nsec = ns % ns_per_s;
    if (::pthread_mutex_timedlock(mutex.native_handle(), &until) == 0) {
      return {mutex, std::adopt_lock};
    }
  }
  return {};
}

}  // namespace forebay
