#pragma once

#include <pthread.h>

#include <atomic>
#include <cstdint>
#include <ctime>
#include <mutex>

namespace forebay {

/// Locks `mutex` as soon as it can within 3 s: whoever holds it may wait for a file server that
/// never answers. Who waited in vain says so in `is_stuck`; then nobody waits any more. In two
/// waits: of a process that was stopped meanwhile one may be over before whoever holds the lock
/// goes on. Not by std::timed_mutex, whose calls ThreadSanitizer does not know.
inline std::unique_lock<std::mutex> lock_unless_stuck(std::mutex& mutex,
                                                      std::atomic<bool>& is_stuck) {
  if (is_stuck.load()) return {mutex, std::try_to_lock};
  constexpr int waits = 2;
  constexpr std::int64_t ns_per_s = 1'000'000'000;
  constexpr std::int64_t each_ns = 3 * ns_per_s / waits;
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
  is_stuck.store(true);
  return {};
}

}  // namespace forebay
