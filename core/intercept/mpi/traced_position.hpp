#pragma once

#include <atomic>
#include <cstdint>

namespace forebay {

/// Where an opening's individual file pointer stands, in etypes, as long as that follows from the
/// calls that moved it: asking the MPI costs more than the rest of tracing a call, and in a view
/// with holes as much as the position is far.
class TracedPosition {
 public:
  static constexpr std::int64_t unknown = -1;

  /// Unless `calls_overlap`, the program's threads call one after the other, as it has agreed with
  /// the MPI: atomic operations, which cost as much as the rest of this, are spared then.
  explicit TracedPosition(bool calls_overlap) : calls_overlap_(calls_overlap) {}

  /// A call by the pointer begins. Where it stands; unknown: the MPI has to be asked.
  std::int64_t begin() {
    if (!calls_overlap_) return position_.load(std::memory_order_relaxed);
    if (state_.fetch_add(one_call, std::memory_order_acquire) == 0) {
      return position_.load(std::memory_order_relaxed);
    }
    state_.fetch_or(overlapped, std::memory_order_relaxed);
    return unknown;
  }

  /// It has ended and left the pointer at `position`.
  void end(std::int64_t position) {
    if (!calls_overlap_) return position_.store(position, std::memory_order_relaxed);
    std::uint32_t alone = one_call;
    if (state_.load(std::memory_order_relaxed) == alone) {
      // Nobody looks at the position now: who begins asks the MPI.
      position_.store(position, std::memory_order_relaxed);
      if (state_.compare_exchange_strong(alone, 0, std::memory_order_release,
                                         std::memory_order_relaxed)) {
        return;
      }
    }
    // Of calls that overlap nobody knows which was first.
    position_.store(unknown, std::memory_order_relaxed);
    const std::uint32_t left = state_.fetch_sub(one_call, std::memory_order_acq_rel) - one_call;
    std::uint32_t ended = overlapped;
    if (left == ended) {
      state_.compare_exchange_strong(ended, 0, std::memory_order_acq_rel,
                                     std::memory_order_relaxed);
    }
  }

 private:
  static constexpr std::uint32_t overlapped = 1;
  static constexpr std::uint32_t one_call = 2;

  const bool calls_overlap_;
  std::atomic<std::int64_t> position_{unknown};
  /// Calls by the pointer that have not ended, and whether any of them has met another.
  std::atomic<std::uint32_t> state_{0};
};

}  // namespace forebay
