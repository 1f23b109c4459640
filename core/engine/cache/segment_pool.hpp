#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "core/engine/cache/log_store.hpp"
#include "core/engine/cache/resource.hpp"
#include "core/engine/cache/segment_reserve.hpp"
#include "core/model/error.hpp"
#include "core/model/extent.hpp"

namespace forebay {

/// Files to become segments of one log: made ahead of need by a thread, since getting storage for
/// one takes as long as filling it, or laid out when they are needed, and used again when they are
/// flushed.
/// They grow with what was made before, to a third of it, up to limits: a log that stays small is
/// made and removed in little time, and one that does not has few of them. To a twelfth of it,
/// where storage takes time by the byte: what was made ahead and is not needed in the end is little
/// beside the rest then. What they take of the node's capacity is held in its name. With a reserve,
/// files come from there if there are any, and go there. Thread-safe.
class SegmentPool {
 public:
  /// A file that carries a name of the pool's until it gets one of the log's.
  struct Blank {
    std::string name;
    Bytes bytes = 0;
    LogFile file;
  };

  /// Sizes of files, bytes. None but the first is more than an eighth of the log's share of the
  /// capacity, or a 64th of what the log holds of it, as it was when the one before was made.
  struct Sizes {
    Bytes first = 0;
    Bytes largest = 0;
  };
  /// `store` must outlive the pool. `ahead`: by a thread, if one is to be had, with storage behind
  /// them.
  SegmentPool(LogStore& store, Sizes sizes, bool ahead, std::unique_ptr<ResourceHolder> capacity,
              std::shared_ptr<SegmentReserve> reserve);
  ~SegmentPool();  ///< What is blank stays; destroying the store removes it.
  SegmentPool(const SegmentPool&) = delete;
  SegmentPool& operator=(const SegmentPool&) = delete;

  /// Makes one in the background, if that is to be, there is none and the capacity allows it.
  void prepare();
  /// No value: the capacity is exhausted. Errors: what the store says.
  Result<std::optional<Blank>> take();
  /// The file of `bytes` that is called `name` is flushed. It is kept for another use, here or in
  /// the reserve, or removed where there are enough, or where others wait for the capacity. A null
  /// file: somebody still reads it.
  Status give_back(const std::string& name, Bytes bytes, std::optional<LogFile> file);

  /// Nobody needs the file any more: to the reserve, if that takes it. True: it does, and has what
  /// was taken of the capacity for it.
  bool keep(Blank blank);

  /// Waits for others to give capacity back, at most `patience`. True: take() gives a file.
  Result<bool> wait(std::chrono::milliseconds patience);
  /// The store is about to be destroyed: what is blank goes to the reserve, and all capacity is
  /// given back. Nothing is taken afterwards.
  void close();
  /// Gives a spare file up if others wait for the capacity.
  void trim();
  /// Somebody else waits for capacity, which flushing this log would give back.
  bool wanted_by_others() const { return capacity_->wanted_by_others(); }

 private:
  bool take_capacity(Bytes bytes);
  std::optional<Blank> reserved(const std::string& name, Bytes bytes);
  Result<Blank> make(Bytes bytes);
  void made(const Blank& blank);  ///< The next one goes by it.
  std::string next_name();
  std::string next_name_locked();
  void work();

  LogStore& store_;
  bool ahead_ = false;  ///< As it was made.
  const Sizes sizes_;
  const std::unique_ptr<ResourceHolder> capacity_;
  const std::shared_ptr<SegmentReserve> reserve_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<Blank> blank_;  ///< Guarded by mutex_, as is what follows.
  Bytes all_made_ = 0;
  Bytes next_bytes_;               ///< Of the file that is made next, or is being made.
  bool making_ = false;            ///< The thread is about to.
  std::uint64_t next_number_ = 0;  ///< Of a name.
  bool stopping_ = false;
  std::thread worker_;  ///< Where files are made ahead.
};

}  // namespace forebay
