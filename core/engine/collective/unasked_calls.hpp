#pragma once

#include <algorithm>
#include <cstdint>

namespace forebay {

/// How many collective calls may still go direct without an agreement; the same on every rank.
class UnaskedCalls {
 public:
  /// Whether the next call needs none.
  bool take() {
    if (left_ == 0) return false;
    --left_;
    return true;
  }
  /// An agreement said that calls as these need none: for some, each time for eight times as many.
  void grant() {
    left_ = next_;
    next_ = std::min(8 * next_, most);
  }
  /// For few calls again: they are dear, or where ranks meet may change.
  void begin_anew() { next_ = first; }
  /// What was agreed does not hold any more.
  void end() { left_ = 0; }

 private:
  static constexpr std::int64_t first = 8;
  static constexpr std::int64_t most = 32768;

  std::int64_t left_ = 0;
  std::int64_t next_ = first;
};

}  // namespace forebay
