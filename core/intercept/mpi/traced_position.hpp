#pragma once

#include <cstdint>
#include <mutex>

namespace forebay {

/// Where an opening's individual file pointer stands, in etypes, as long as that follows from the
/// calls that moved it: asking the MPI costs more than the rest of tracing a call, and in a view
/// with holes as much as the position is far.
class TracedPosition {
 public:
  static constexpr std::int64_t unknown = -1;

  /// A call by the pointer begins. Where it stands; unknown: the MPI has to be asked.
  std::int64_t begin() {
    const std::lock_guard lock(mutex_);
    if (calls_++ > 0) is_overlapped_ = true;
    return calls_ > 1 ? unknown : position_;
  }

  /// It has ended and left the pointer at `position`.
  void end(std::int64_t position) {
    const std::lock_guard lock(mutex_);
    // Of calls that overlap nobody knows which was first.
    position_ = is_overlapped_ ? unknown : position;
    if (--calls_ == 0) is_overlapped_ = false;
  }

  /// What happened may have moved it.
  void forget() {
    const std::lock_guard lock(mutex_);
    position_ = unknown;
    if (calls_ > 0) is_overlapped_ = true;
  }

 private:
  std::mutex mutex_;
  std::int64_t position_ = unknown;
  int calls_ = 0;  ///< By the pointer, that have not ended.
  bool is_overlapped_ = false;
};

}  // namespace forebay
