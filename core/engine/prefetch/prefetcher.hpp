#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <vector>

#include "core/engine/cache/resource.hpp"
#include "core/engine/prefetch/prefetched_file.hpp"
#include "core/model/read_intent.hpp"
#include "core/storage/fetch_source.hpp"
#include "core/storage/read_queue.hpp"

namespace forebay {

/// Reads files ahead of a process, all of them by one thread and one queue, within one amount of
/// memory. Thread-safe.
class Prefetcher {
 public:
  /// Memory of one file, and its unit, where the intent says nothing.
  static constexpr Bytes usual_budget = 8 * MiB;
  static constexpr Bytes usual_block = 256 * KiB;

  /// `memory`: for all files together.
  Prefetcher(std::unique_ptr<ReadQueue> queue, Bytes memory);
  ~Prefetcher();
  Prefetcher(const Prefetcher&) = delete;
  Prefetcher& operator=(const Prefetcher&) = delete;

  /// Reads a file ahead until release(). Its memory is what the intent asks for, or what is left,
  /// but not less than four blocks, which are smaller than asked for where they must. Error:
  /// no_memory.
  Result<std::shared_ptr<PrefetchedFile>> add(std::string path, std::unique_ptr<FetchSource> source,
                                              const ReadIntent& intent);
  void release(const std::shared_ptr<PrefetchedFile>& file);

  /// A file has room for a request.
  void wake();

  /// The queue of reads is of no use any more, and nothing is read ahead.
  bool has_broken_queue() const { return queue_broke_.load(); }

  /// Reads nothing ahead any more, for the reason `why`: waits for what is under way, and closes
  /// all descriptors of its own. Only wake() and release() may be called afterwards.
  void end(const char* why);

 private:
  struct Member {
    std::shared_ptr<PrefetchedFile> file;
    std::unique_ptr<ResourceHolder> memory;
  };
  struct UnderWay {
    std::shared_ptr<Member> member;  ///< Keeps the memory until the kernel is done with it.
    std::uint64_t tag;               ///< The file's.
  };

  void work();
  void start_requests();
  void stop_all(const char* why);
  void give_up();
  std::vector<std::shared_ptr<Member>> members();

  const std::shared_ptr<Resource> memory_;
  std::atomic<bool> idle_{false};
  std::atomic<bool> stopping_{false};
  std::atomic<bool> queue_broke_{false};
  std::mutex mutex_;
  std::vector<std::shared_ptr<Member>> members_;  ///< Guarded by mutex_.
  bool broken_ = false;  ///< Guarded by mutex_: nothing is fetched any more.
  std::unordered_map<std::uint64_t, UnderWay> under_way_;  ///< The thread's alone, as is next_tag_.
  std::uint64_t next_tag_ = 0;
  std::mutex queue_mutex_;            ///< Against the queue's end; the thread needs it not.
  std::unique_ptr<ReadQueue> queue_;  ///< Null after end().
  std::thread thread_;
};

}  // namespace forebay
