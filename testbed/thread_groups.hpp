#pragma once

#include <sys/types.h>

#include <mutex>
#include <unordered_map>

#include "testbed/server_queue.hpp"

namespace forebay::testbed {

/// Which process a thread belongs to. The kernel names a request's sender by thread id; a client of
/// the emulated file system is a process. Thread-safe.
class ThreadGroups {
 public:
  /// The process of `thread`, from /proc/THREAD/status; `thread` itself where that cannot be read
  /// (it ended, or lives in another PID namespace and is 0). Answers are remembered for a second,
  /// so that a thread id that the kernel uses again is found out.
  pid_t process_of(pid_t thread, Time now);

 private:
  struct Answer {
    pid_t process = 0;
    Time until{};
  };
  std::mutex mutex_;
  std::unordered_map<pid_t, Answer> answers_;
};

}  // namespace forebay::testbed
