#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace forebay {

/// Wakes those who wait, mostly one process: a counter in shared memory that only grows, and a
/// futex on it. Busy polling would be faster by a microsecond and ruinous where ranks outnumber
/// cores.
///
/// Protocol: whoever changes something that somebody may wait for changes it first and rings then;
/// who waits reads `rings` before looking. So a change between the look and the sleep is never
/// missed: the futex sees a counter that has moved on and does not sleep.
/// Zero-filled memory is a valid Bell.
struct alignas(64) Bell {
  std::atomic<std::uint32_t> rings;
  std::atomic<std::uint32_t> sleeping;  ///< How many, or more: a killed one stays counted.

  void ring();

  /// Returns once `rings` differs from `seen`, or after `limit`.
  void wait(std::uint32_t seen, std::chrono::nanoseconds limit);
};

static_assert(std::atomic<std::uint32_t>::is_always_lock_free, "a futex is a plain word");

/// Tells the processor that this is a loop that waits: the core's other thread gets its share.
inline void pause_processor() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace forebay
