#include "testbed/reply_timer.hpp"

#include <sys/prctl.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

namespace forebay::testbed {

Time ReplyTimer::now() {
  timespec time{};
  ::clock_gettime(CLOCK_MONOTONIC, &time);
  return Time(time.tv_sec * ns_per_s + time.tv_nsec);
}

ReplyTimer::ReplyTimer() : timer_fd_(::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC)) {
  if (timer_fd_ < 0) throw std::system_error(errno, std::system_category(), "timerfd_create");
  thread_ = std::thread([this] { run(); });
}

ReplyTimer::~ReplyTimer() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    arm(Time{});
  }
  thread_.join();
  ::close(timer_fd_);
}

void ReplyTimer::at(Time due, std::function<void()> action) {
  const std::lock_guard lock(mutex_);
  const bool earliest = entries_.empty() || due < entries_.top().due;
  entries_.push({due, sequence_++, std::move(action)});
  if (earliest && !stopping_) arm(due);
}

/// Lets the thread's read return at `due`. A time of 0 would disarm the timer, and all past times
/// are alike. Called under the mutex, so that the last arming is for the earliest entry.
void ReplyTimer::arm(Time due) const {
  const std::int64_t ns = std::max<std::int64_t>(1, due.count());
  const itimerspec when{{0, 0}, {ns / ns_per_s, ns % ns_per_s}};
  ::timerfd_settime(timer_fd_, TFD_TIMER_ABSTIME, &when, nullptr);
}

void ReplyTimer::run() {
  // The default slack of 50 us would be a fifth of a fast server's latency.
  ::prctl(PR_SET_TIMERSLACK, 1);
  std::unique_lock lock(mutex_);
  for (;;) {
    while (!entries_.empty() && (stopping_ || entries_.top().due <= now())) {
      // top() is const only to protect the order; the entry leaves at once.
      const auto action = std::move(const_cast<Entry&>(entries_.top()).action);
      entries_.pop();
      lock.unlock();
      action();
      lock.lock();
    }
    if (stopping_) return;
    if (!entries_.empty()) arm(entries_.top().due);
    lock.unlock();
    std::uint64_t expirations = 0;
    // Whatever the outcome, the loop looks again: an interrupted read is a spurious wake-up.
    [[maybe_unused]] const auto count = ::read(timer_fd_, &expirations, sizeof expirations);
    lock.lock();
  }
}

}  // namespace forebay::testbed
