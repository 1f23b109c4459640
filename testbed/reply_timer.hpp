#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <queue>
#include <thread>
#include <vector>

#include "testbed/server_queue.hpp"

namespace forebay::testbed {

/// Performs actions at points in time (CLOCK_MONOTONIC, absolute), on one thread of its own, so
/// that any number of replies can be outstanding while nobody sleeps. Actions due at the same time
/// run in the order of scheduling. All members may be called from any thread.
class ReplyTimer {
 public:
  ReplyTimer();
  /// Performs what is left at once, whenever it was due.
  ~ReplyTimer();
  ReplyTimer(const ReplyTimer&) = delete;
  ReplyTimer& operator=(const ReplyTimer&) = delete;

  /// CLOCK_MONOTONIC.
  static Time now();

  /// Performs `action` at `due`, or as soon as possible after. An action may schedule others, and
  /// must not block.
  void at(Time due, std::function<void()> action);

 private:
  struct Entry {
    Time due;
    std::uint64_t sequence;
    std::function<void()> action;
    bool operator>(const Entry& other) const {
      return due != other.due ? due > other.due : sequence > other.sequence;
    }
  };

  void arm(Time due) const;
  void run();

  int timer_fd_;
  std::mutex mutex_;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> entries_;
  std::uint64_t sequence_ = 0;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace forebay::testbed
