#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>

#include "core/engine/prefetch/prefetch_figures.hpp"
#include "core/engine/prefetch/served_file.hpp"
#include "core/model/extent.hpp"

namespace forebay::posix {

/// Counts what the kernel carried out of the reads of an open file. Without a lock: signal handlers
/// read, too.
class CountedReads {
 public:
  /// A call that took `ns` and brought `moved` bytes. `is_followed`: it is the rest of a read that
  /// was compared with what was foreseen.
  void count(ssize_t moved, std::int64_t ns, bool is_followed) {
    if (moved == 0) return;  // At the end of the file.
    ++calls_;
    if (ns > stall_ns) ++stalls_;
    ns_ += ns;
    if (is_followed) return;
    ++reads_unfollowed_;
    if (moved > 0) bytes_unfollowed_ += moved;
  }

  /// Since the last call.
  KernelReads take() {
    return {.calls = calls_.exchange(0),
            .stalls = stalls_.exchange(0),
            .ns = ns_.exchange(0),
            .reads_unfollowed = reads_unfollowed_.exchange(0),
            .bytes_unfollowed = bytes_unfollowed_.exchange(0)};
  }

 private:
  std::atomic<std::int64_t> calls_{0};
  std::atomic<std::int64_t> stalls_{0};
  std::atomic<std::int64_t> ns_{0};
  std::atomic<std::int64_t> reads_unfollowed_{0};
  std::atomic<Bytes> bytes_unfollowed_{0};
};

}  // namespace forebay::posix
