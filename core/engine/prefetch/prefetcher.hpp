#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/engine/cache/resource.hpp"
#include "core/engine/prefetch/leavable_thread.hpp"
#include "core/engine/prefetch/request_memory.hpp"
#include "core/engine/prefetch/served_file.hpp"
#include "core/engine/prefetch/shared_file.hpp"
#include "core/engine/prefetch/shared_window.hpp"
#include "core/model/error.hpp"
#include "core/model/extent.hpp"
#include "core/model/read_intent.hpp"
#include "core/storage/fetch_source.hpp"
#include "core/storage/file_version.hpp"
#include "core/storage/read_queue.hpp"

namespace forebay {

/// Reads files ahead of a process, all of them by one thread and one queue, within one amount of
/// memory, and as much that is shared with other processes. Thread-safe.
class Prefetcher {
 public:
  /// Memory of one file, and its unit, where the intent says nothing.
  static constexpr Bytes usual_budget = 8 * MiB;
  static constexpr Bytes usual_block = 512 * KiB;

  /// `memory`: for all files together. `prepare`: called in the thread, before all else.
  Prefetcher(std::unique_ptr<ReadQueue> queue, Bytes memory,
             std::function<void()> prepare = nullptr);
  ~Prefetcher();
  Prefetcher(const Prefetcher&) = delete;
  Prefetcher& operator=(const Prefetcher&) = delete;

  /// Reads a file ahead until release(). Its memory is what the intent asks for, or, when more than
  /// half of all is taken, no more than half of what is left, so that later ones have some, too;
  /// but not less than four blocks, which are smaller than asked for where they must. Error:
  /// no_memory.
  Result<std::shared_ptr<ServedFile>> add(std::string path, std::unique_ptr<FetchSource> source,
                                          const ReadIntent& intent);
  /// The same together with the processes of the node that read it by the same intent, in memory
  /// that they share. `version` and `now_ns`: as for ServedFile::start(); `before`: what the
  /// program has read of it until now; `group`: as SharedFile::window_for() has it. Error:
  /// no_memory; unsupported: it cannot be shared.
  Result<std::shared_ptr<ServedFile>> add_shared(std::string path,
                                                 std::unique_ptr<FetchSource> source,
                                                 const ReadIntent& intent,
                                                 const FileVersion& version,
                                                 const SharedWindow::Before& before,
                                                 std::int64_t now_ns, int group = 0);
  /// Reads the file ahead no more. Its memory is free for others as soon as no read of it is under
  /// way and the thread is past it, which may be shortly after the return.
  void release(const std::shared_ptr<ServedFile>& file);

  /// A file has room for a request.
  void wake();

  /// The process ends: nobody shares anything with it any more. Waits for what is on its way for
  /// others, but not for long.
  void finish_shared();

  /// The queue of reads is of no use any more, and nothing is read ahead.
  bool has_broken_queue() const { return queue_broke_.load(); }

  /// Reads nothing ahead any more, for the reason `why`: waits for what is under way, and closes
  /// all descriptors of its own. Where a file server does not answer for so long that others should
  /// not wait with it, or the program has closed what wakes the thread, all is left as it is, and
  /// this is not to be destroyed. Only wake() and release() may be called afterwards. False: the
  /// program has closed what wakes the thread.
  bool end(const char* why);

 private:
  struct Member {
    std::shared_ptr<ServedFile> file;
    std::unique_ptr<ResourceHolder> memory;
  };
  struct UnderWay {
    std::shared_ptr<Member> member;  ///< Keeps the memory until the kernel is done with it.
    std::uint64_t tag;               ///< The file's.
  };

  /// What a file gets.
  struct Share {
    Bytes bytes;
    Bytes block;
  };

  /// With `most` bytes at most.
  static Share share_of(const ReadIntent& intent, Bytes most);
  Bytes most_for_one() const;
  Result<std::shared_ptr<ServedFile>> join(std::shared_ptr<ServedFile> file,
                                           std::unique_ptr<ResourceHolder> memory);
  void work();
  void start_requests();
  void stop_all(const char* why);
  void give_up();
  void keep_what_is_under_way();
  void let_go();
  std::vector<std::shared_ptr<Member>> members();

  const std::shared_ptr<Resource> memory_;
  /// Apart from that: who goes on together with others has both for a moment.
  const std::shared_ptr<Resource> shared_memory_;
  const std::shared_ptr<RequestMemory> requests_ = std::make_shared<RequestMemory>();
  std::atomic<bool> idle_{false};
  std::atomic<bool> stopping_{false};
  std::atomic<bool> queue_broke_{false};
  std::mutex mutex_;
  std::vector<std::shared_ptr<Member>> members_;   ///< Guarded by mutex_.
  std::vector<std::weak_ptr<SharedFile>> shared_;  ///< Guarded by mutex_. Released ones, too.
  bool broken_ = false;  ///< Guarded by mutex_: nothing is fetched any more.
  std::unordered_map<std::uint64_t, UnderWay> under_way_;  ///< The thread's alone, as is next_tag_.
  std::uint64_t next_tag_ = 0;
  std::mutex queue_mutex_;            ///< Against the queue's end; the thread needs it not.
  std::unique_ptr<ReadQueue> queue_;  ///< Null after end().
  LeavableThread thread_;
};

}  // namespace forebay
