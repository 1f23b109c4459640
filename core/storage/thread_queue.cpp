#include <cassert>
#include <cerrno>
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>

#include "core/storage/background_thread.hpp"
#include "core/storage/read_queue.hpp"

namespace forebay {
namespace {

class ThreadQueue final : public ReadQueue {
 public:
  explicit ThreadQueue(int depth) : depth_(depth) {
    ended_ = room();
    workers_.reserve(static_cast<std::size_t>(depth));  // A thread that was made must have a place.
  }

  ~ThreadQueue() override {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    work_.notify_all();
    for (std::thread& worker : workers_) worker.join();
  }

  ThreadQueue(const ThreadQueue&) = delete;
  ThreadQueue& operator=(const ThreadQueue&) = delete;

  int depth() const override { return depth_; }
  std::vector<int> descriptors() const override { return {}; }

  Status start(const ReadRequest& request) override {
    {
      const std::lock_guard lock(mutex_);
      assert(under_way_ < depth_);
      requests_.push_back(request);
      ++under_way_;
    }
    if (static_cast<int>(workers_.size()) < under_way_ && !add_worker() && workers_.empty()) {
      const std::lock_guard lock(mutex_);
      requests_.clear();
      under_way_ = 0;
      return fail(EAGAIN, "start a thread that reads");
    }
    work_.notify_one();
    return {};
  }

  Result<std::vector<ReadOutcome>> wait() override {
    std::unique_lock lock(mutex_);
    ended_something_.wait(lock, [&] { return woken_ || !ended_.empty(); });
    auto next = room();
    woken_ = false;
    under_way_ -= static_cast<int>(ended_.size());
    return std::exchange(ended_, std::move(next));
  }

  bool drain() override { return true; }  // The end of its threads is waited for.

  bool wake() override {
    const std::lock_guard lock(mutex_);
    woken_ = true;
    ended_something_.notify_one();
    return true;
  }

 private:
  bool add_worker() {
    auto worker = try_background_thread([this] { work(); });
    if (!worker) return false;
    workers_.push_back(std::move(*worker));  // There is room for all.
    return true;
  }

  void work() {
    std::unique_lock lock(mutex_);
    for (;;) {
      work_.wait(lock, [&] { return stopping_ || !requests_.empty(); });
      if (requests_.empty()) return;
      const ReadRequest request = requests_.front();
      requests_.pop_front();
      lock.unlock();
      const ReadOutcome outcome = carried_out(request);
      lock.lock();
      ended_.push_back(outcome);
      ended_something_.notify_one();
    }
  }

  /// What an error says may want memory that is not there.
  static ReadOutcome carried_out(const ReadRequest& request) {
    try {
      const auto moved = request.source->read(request.into, request.offset);
      return {request.tag, moved.value_or(0), moved ? 0 : errno_of(moved.error())};
    } catch (const std::bad_alloc&) {
      return {request.tag, 0, ENOMEM};
    }
  }

  /// For all that can end: a thread that reads must not want memory then.
  std::vector<ReadOutcome> room() const {
    std::vector<ReadOutcome> result;
    result.reserve(static_cast<std::size_t>(depth_));
    return result;
  }

  static int errno_of(const Error& error) { return error.os_errno != 0 ? error.os_errno : EIO; }

  const int depth_;
  std::mutex mutex_;
  std::condition_variable work_;
  std::condition_variable ended_something_;
  std::deque<ReadRequest> requests_;
  std::vector<ReadOutcome> ended_;
  int under_way_ = 0;
  bool woken_ = false;
  bool stopping_ = false;
  std::vector<std::thread> workers_;  ///< Touched by the thread that starts reads alone.
};

}  // namespace

std::unique_ptr<ReadQueue> make_thread_queue(int depth) {
  return std::make_unique<ThreadQueue>(depth);
}

}  // namespace forebay
