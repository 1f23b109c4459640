#pragma once

#include <pthread.h>

#include <chrono>
#include <ctime>
#include <mutex>

namespace forebay {

/// Locks `mutex` as soon as it can within `longest`: whoever holds it may wait for a file server
/// that never answers. Not by std::timed_mutex, whose calls ThreadSanitizer does not know.
inline std::unique_lock<std::mutex> lock_within(std::mutex& mutex, std::chrono::seconds longest) {
  timespec until{};
  ::clock_gettime(CLOCK_REALTIME, &until);
  until.tv_sec += longest.count();
  if (::pthread_mutex_timedlock(mutex.native_handle(), &until) != 0) return {};
  return {mutex, std::adopt_lock};
}

}  // namespace forebay
