#pragma once

#include <atomic>
#include <memory>
#include <thread>

#include "core/engine/cache/log_store.hpp"
#include "core/engine/cache/log_trial.hpp"

namespace forebay {

/// Writes to the device of a log, in a thread of its own, as long as a trial wants to know how fast
/// that is: to a file that has no name any more, of bytes that nobody reads.
class LogProbe {
 public:
  /// For who got true from trial->takes_probe(). `store` must outlive it. Null: there is no thread
  /// to be had.
  static std::unique_ptr<LogProbe> start(LogStore& store, std::shared_ptr<LogTrial> trial);
  ~LogProbe();  ///< Waits for one write.
  LogProbe(const LogProbe&) = delete;
  LogProbe& operator=(const LogProbe&) = delete;

 private:
  LogProbe(LogStore& store, std::shared_ptr<LogTrial> trial);
  void work();

  LogStore& store_;
  const std::shared_ptr<LogTrial> trial_;
  std::atomic<bool> stopping_{false};
  std::thread worker_;
};

}  // namespace forebay
