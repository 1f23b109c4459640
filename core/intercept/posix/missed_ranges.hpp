#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace forebay::posix {

/// Ranges of memory that were unmapped by calls that could not have the registry: in a signal
/// handler, in an allocator around a fork, or while another thread had it. Who has it next takes
/// them. add() takes no lock and no memory.
class MissedRanges {
 public:
  static constexpr std::size_t most = 64;

  /// Beyond `most` of them, all memory counts as unmapped.
  void add(std::uintptr_t begin, std::uintptr_t end) {
    bool is_kept = false;
    for (Range& range : ranges_) {
      Stage free = Stage::free;
      if (!range.stage.compare_exchange_strong(free, Stage::claimed)) continue;
      range.begin = begin;
      range.end = end;
      range.stage.store(Stage::there);
      is_kept = true;
      break;
    }
    if (!is_kept) is_all_.store(true);
    any_.store(true);
  }

  /// Hands those since the last call to `forget`. By one thread at a time.
  template <typename Forget>
  void take(Forget&& forget) {
    if (!any_.load() || !any_.exchange(false)) return;
    if (is_all_.exchange(false)) forget(0, std::numeric_limits<std::uintptr_t>::max());
    for (Range& range : ranges_) {
      Stage there = Stage::there;
      if (!range.stage.compare_exchange_strong(there, Stage::claimed)) continue;
      const std::uintptr_t begin = range.begin;
      const std::uintptr_t end = range.end;
      range.stage.store(Stage::free);
      forget(begin, end);
    }
  }

 private:
  enum class Stage { free, claimed, there };

  struct Range {
    std::atomic<Stage> stage{Stage::free};
    std::uintptr_t begin = 0;  ///< Of who has claimed it, as is end.
    std::uintptr_t end = 0;
  };

  std::array<Range, most> ranges_{};
  std::atomic<bool> is_all_{false};
  std::atomic<bool> any_{false};
};

}  // namespace forebay::posix
