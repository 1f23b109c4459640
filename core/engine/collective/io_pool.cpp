#include "core/engine/collective/io_pool.hpp"

#include <signal.h>

#include <system_error>
#include <utility>

namespace forebay {

IoPool::IoPool(int threads) {
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, &before);  // Threads inherit the mask of their maker.
  while (static_cast<int>(workers_.size()) < threads && add_worker()) {
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

bool IoPool::add_worker() {
  try {
    workers_.emplace_back([this] { work(); });
    return true;
  } catch (const std::system_error&) {
    // To fail would leave the other ranks waiting in the collective call that wanted the pool.
    return false;
  }
}

IoPool::~IoPool() {
  {
    const std::scoped_lock lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  for (auto& worker : workers_) worker.join();
}

void IoPool::submit(std::function<void()> job) {
  if (workers_.empty()) {
    job();
    return;
  }
  {
    const std::scoped_lock lock(mutex_);
    jobs_.push_back(std::move(job));
  }
  changed_.notify_one();
}

void IoPool::work() {
  for (;;) {
    std::function<void()> job;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return stopping_ || !jobs_.empty(); });
      if (jobs_.empty()) return;
      job = std::move(jobs_.front());
      jobs_.pop_front();
    }
    job();
  }
}

}  // namespace forebay
