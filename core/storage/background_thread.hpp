#pragma once

#include <signal.h>

#include <thread>
#include <utility>

namespace forebay {

/// A thread in which all signals are blocked, so that a program's handlers run on its own threads.
/// Throws std::system_error where none is to be had; the caller's signals are as before, too.
template <typename Work>
std::thread background_thread(Work work) {
  struct Blocked {
    Blocked() {
      sigset_t all;
      sigfillset(&all);
      pthread_sigmask(SIG_BLOCK, &all, &before);  // Threads inherit the mask of their maker.
    }
    ~Blocked() { pthread_sigmask(SIG_SETMASK, &before, nullptr); }
    Blocked(const Blocked&) = delete;
    Blocked& operator=(const Blocked&) = delete;
    sigset_t before{};
  };
  const Blocked blocked;
  return std::thread(std::move(work));
}

}  // namespace forebay
