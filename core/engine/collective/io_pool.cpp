#include "core/engine/collective/io_pool.hpp"

#include <utility>

#include "core/storage/background_thread.hpp"

namespace forebay {

IoPool::IoPool(int threads) {
  while (static_cast<int>(workers_.size()) < threads) {
    auto worker = try_background_thread([this] { work(); });
    // To fail would leave the other ranks waiting in the collective call that wanted the pool.
    if (!worker) return;
    workers_.push_back(std::move(*worker));
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
