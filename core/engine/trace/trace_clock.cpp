#include "core/engine/trace/trace_clock.hpp"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>
#ifdef __x86_64__
#include <cpuid.h>
#endif

#include <array>
#include <cstdint>
#include <limits>
#include <string_view>

namespace forebay::trace {

namespace detail {
constinit bool counter_is_steady = false;
}  // namespace detail

namespace {

#ifdef __x86_64__
/// "Invariant TSC": leaf 8000_0007h, bit 8 of EDX. [Intel SDM volume 3, section 18.17.1]
bool is_invariant() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid(0x80000007, &a, &b, &c, &d) != 0 && (d & (1U << 8)) != 0;
}

/// The kernel watches the counters of all cores, and leaves them where they part.
bool kernel_trusts_it() {
  constexpr const char* path = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
  const auto fd = static_cast<int>(::syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC));
  if (fd < 0) return false;
  std::array<char, 16> text{};
  const long length = ::syscall(SYS_read, fd, text.data(), text.size());
  ::syscall(SYS_close, fd);
  return length >= 3 && std::string_view(text.data(), 3) == "tsc";
}
#endif

}  // namespace

TickSource find_clock() {
#if defined(__x86_64__)
  detail::counter_is_steady = is_invariant() && kernel_trusts_it();
  if (detail::counter_is_steady) return TickSource::tsc;
#elif defined(__aarch64__)
  detail::counter_is_steady = true;  // Arm: one count for the whole system.
  return TickSource::system_counter;
#endif
  return TickSource::monotonic;
}

TickPair tick_pair() {
  TickPair best{};
  std::uint64_t narrowest = std::numeric_limits<std::uint64_t>::max();
  // Whoever is interrupted between the clocks tries again.
  for (int i = 0; i < 3; ++i) {
    const std::uint64_t before = ticks();
    const std::int64_t now = clock_ns(CLOCK_MONOTONIC);
    const std::uint64_t width = ticks() - before;
    if (width < narrowest) {
      narrowest = width;
      best = {before + width / 2, now};
    }
  }
  return best;
}

std::uint64_t ticks_of_a_while() {
#if defined(__x86_64__)
  if (detail::counter_is_steady) return std::uint64_t{1} << 31;
#elif defined(__aarch64__)
  std::uint64_t per_second = 0;
  asm("mrs %0, cntfrq_el0" : "=r"(per_second));
  return per_second;
#endif
  return 1'000'000'000;
}

}  // namespace forebay::trace
