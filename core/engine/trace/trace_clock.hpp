#pragma once

#include <ctime>
#ifdef __x86_64__
#include <x86intrin.h>
#endif

#include <cstdint>

#include "core/model/trace_event.hpp"

namespace forebay::trace {

namespace detail {
/// The processor's counter runs at one rate on all cores, and the kernel trusts it too.
extern constinit bool counter_is_steady;
}  // namespace detail

inline std::int64_t clock_ns(clockid_t clock) {
  timespec now{};
  ::clock_gettime(clock, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

/// What events are timed by, in a process whose counter is steady or not.
inline std::uint64_t ticks(bool counter_is_steady) {
#if defined(__x86_64__)
  if (counter_is_steady) [[likely]]
    return __rdtsc();
#elif defined(__aarch64__)
  if (counter_is_steady) [[likely]] {
    std::uint64_t now = 0;
    asm volatile("mrs %0, cntvct_el0" : "=r"(now));
    return now;
  }
#endif
  return static_cast<std::uint64_t>(clock_ns(CLOCK_MONOTONIC));
}

/// The same in this one. Until find_clock() was called, CLOCK_MONOTONIC.
inline std::uint64_t ticks() { return ticks(detail::counter_is_steady); }

/// Decides what ticks() is by. Calls the kernel, not the C library.
TickSource find_clock();

/// The same moment by both clocks.
struct TickPair {
  std::uint64_t ticks;
  std::int64_t monotonic_ns;
};
TickPair tick_pair();

/// Ticks of one to two seconds, or less where a processor counts beyond 2 GHz: nothing is measured.
std::uint64_t ticks_of_a_while();

}  // namespace forebay::trace
