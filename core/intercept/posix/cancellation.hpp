#pragma once

#include <pthread.h>

namespace forebay::posix {

/// While it stands, the calling thread is not cancelled: what waits in our code would be left in
/// the middle, and a thread that is cancelled ends the whole program where the unwinding of its
/// stack meets a frame that is noexcept.
class NotCancelled {
 public:
  NotCancelled() { ::pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before_); }
  ~NotCancelled() {
    int ours = 0;
    ::pthread_setcancelstate(before_, &ours);
  }
  NotCancelled(const NotCancelled&) = delete;
  NotCancelled& operator=(const NotCancelled&) = delete;

 private:
  int before_ = PTHREAD_CANCEL_ENABLE;
};

/// A call that is a cancellation point in the C library is one here: a thread that was cancelled
/// ends at its beginning, before anything was read, and nowhere else in it. Stands in functions
/// that are not noexcept.
class CancellationPoint {
  static NotCancelled after_looking() {
    ::pthread_testcancel();
    return {};
  }
  NotCancelled until_the_end_ = after_looking();
};

}  // namespace forebay::posix
