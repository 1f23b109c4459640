#pragma once

#include <pthread.h>

#include <atomic>

namespace forebay {

/// By this, in memory that processes share, they see whether one of their threads still lives: also
/// where they cannot see its process, which containers may have in a space of numbers of its own,
/// and where another one has its number now. [A robust mutex: pthread_mutexattr_setrobust, POSIX
/// 2017; the kernel hands on what a thread held when it ended]
///
/// One thread holds it, and lets go of it before it ends. The memory stays mapped until then.
class SignOfLife {
 public:
  /// In zero-filled memory, before anybody looks, once.
  void prepare();
  void hold();
  void let_go();
  /// Its thread has ended while it held this.
  bool is_lost();

 private:
  std::atomic<bool> is_held_;
  std::atomic<bool> is_lost_;
  pthread_mutex_t mutex_;
};

}  // namespace forebay
