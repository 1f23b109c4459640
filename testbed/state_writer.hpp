#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <thread>

namespace forebay::testbed {

/// Writes a state file when it starts, once a second, and whenever the process gets SIGUSR1. That
/// signal must be blocked in every thread before.
class StateWriter {
 public:
  /// `describe` gives the content; it is called on the writer's thread, and once on the caller's.
  StateWriter(std::string path, std::function<std::string()> describe);
  ~StateWriter();
  StateWriter(const StateWriter&) = delete;
  StateWriter& operator=(const StateWriter&) = delete;

 private:
  void write();
  void run();

  const std::string path_;
  const std::function<std::string()> describe_;
  bool complained_ = false;
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

}  // namespace forebay::testbed
