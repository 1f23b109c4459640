#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace forebay {

/// Threads that carry out storage calls in the background, so that file I/O of one round overlaps
/// the exchange of the next. They never call MPI: programs that ask for MPI_THREAD_SINGLE are
/// served. All signals are blocked in them, so that a program's handlers run on its own threads.
class IoPool {
 public:
  /// Makes as many as the system gives, perhaps none: then submit() carries the job out itself.
  explicit IoPool(int threads);
  ~IoPool();  ///< Finishes what was submitted.
  IoPool(const IoPool&) = delete;
  IoPool& operator=(const IoPool&) = delete;

  void submit(std::function<void()> job);
  int threads() const { return static_cast<int>(workers_.size()); }

 private:
  void work();
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> jobs_;
  bool stopping_ = false;
  std::vector<std::thread> workers_;
};

}  // namespace forebay
