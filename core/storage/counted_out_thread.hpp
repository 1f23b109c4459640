#pragma once

#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <thread>
#include <utility>

#include "core/storage/background_thread.hpp"

namespace forebay {

/// A background_thread() that the kernel counts no more once it was joined: pthread_join returns a
/// moment before, and then a process is still taken for one of several threads, which unshare(2)
/// and setns(2) refuse.
class CountedOutThread {
 public:
  CountedOutThread() = default;
  template <typename Work>
  explicit CountedOutThread(Work work)
      : number_(std::make_shared<std::atomic<pid_t>>(0)),
        thread_(background_thread([number = number_, work = std::move(work)] {
          number->store(::gettid());
          work();
        })) {}

  bool joinable() const { return thread_.joinable(); }
  void detach() { thread_.detach(); }
  void join() {
    thread_.join();
    // It is past all that it does; yet nothing promises how soon that is.
    constexpr std::chrono::milliseconds longest{100};
    const auto deadline = std::chrono::steady_clock::now() + longest;
    while (::tgkill(::getpid(), number_->load(), 0) == 0 &&
           std::chrono::steady_clock::now() < deadline) {
      std::this_thread::yield();
    }
  }

 private:
  std::shared_ptr<std::atomic<pid_t>> number_;
  std::thread thread_;
};

}  // namespace forebay
