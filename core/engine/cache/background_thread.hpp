#pragma once

#include <signal.h>

#include <thread>
#include <utility>

namespace forebay {

/// A thread in which all signals are blocked, so that a program's handlers run on its own threads.
template <typename Work>
std::thread background_thread(Work work) {
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, &before);  // Threads inherit the mask of their maker.
  std::thread thread(std::move(work));
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return thread;
}

}  // namespace forebay
