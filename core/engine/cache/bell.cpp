#include "core/engine/cache/bell.hpp"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>
#include <ctime>

namespace forebay {

void Bell::ring() {
  // Sequentially consistent on purpose: this store and the load of `sleeping` below must not be
  // reordered against the sleeper's addition to `sleeping` and load of `rings` in wait().
  rings.fetch_add(1);
  if (sleeping.load() != 0) {
    // The memory is shared between processes, so not FUTEX_PRIVATE_FLAG.
    ::syscall(SYS_futex, &rings, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
  }
}

void Bell::wait(std::uint32_t seen, std::chrono::nanoseconds limit) {
  sleeping.fetch_add(1);
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(limit);
  const timespec timeout{seconds.count(), (limit - seconds).count()};
  // Any return is fine (woken, moved on, timed out, interrupted): the caller looks again.
  ::syscall(SYS_futex, &rings, FUTEX_WAIT, seen, &timeout, nullptr, 0);
  sleeping.fetch_sub(1);
}

}  // namespace forebay
