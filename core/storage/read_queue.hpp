#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "core/model/error.hpp"
#include "core/model/extent.hpp"
#include "core/storage/fetch_source.hpp"

namespace forebay {

/// One read to be carried out in the background. Source and memory outlive it.
struct ReadRequest {
  std::uint64_t tag = 0;  ///< Whatever tells requests apart; the largest value is not allowed.
  FetchSource* source = nullptr;
  std::span<std::byte> into;
  Bytes offset = 0;
};

struct ReadOutcome {
  std::uint64_t tag = 0;
  Bytes moved = 0;
  int os_errno = 0;  ///< 0: it did not fail.
};

/// Reads that are under way at the same time. One thread starts and waits; any may wake it.
class ReadQueue {
 public:
  virtual ~ReadQueue() = default;  ///< Waits for what is under way, if it can.

  virtual int depth() const = 0;  ///< Requests that may be under way.

  /// At most depth() may be under way. On an error the memory is the caller's again.
  virtual Status start(const ReadRequest& request) = 0;

  /// What has ended since the last call; waits for the first, or for wake(). Error: the queue can
  /// no longer be used, and what is under way may still write into its memory.
  virtual Result<std::vector<ReadOutcome>> wait() = 0;

  /// Waits for what is under way. False: the queue can no longer be used, and what is under way may
  /// still write into its memory, also once the queue is gone.
  virtual bool drain() = 0;

  /// Its own, that nobody else may close.
  virtual std::vector<int> descriptors() const = 0;

  /// Ends the wait() that is going on, or the next one. False: the program has closed what that
  /// takes, and who waits may go on waiting for ever.
  virtual bool wake() = 0;
};

/// By io_uring; null where the kernel, or who confines the process, does not have it or refuses its
/// use. Sources must have descriptors. `lets_go` hears of each of descriptors() before it is
/// closed.
std::unique_ptr<ReadQueue> make_uring_queue(int depth, std::function<void(int)> lets_go = {});

/// By threads that read, made as they are needed; fewer where the system gives no more.
std::unique_ptr<ReadQueue> make_thread_queue(int depth);

}  // namespace forebay
