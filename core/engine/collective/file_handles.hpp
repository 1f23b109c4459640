#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>

#include "core/model/error.hpp"
#include "core/storage/file.hpp"

namespace forebay {

/// The handles by which this process has one file open, and the write-behind caches of some of
/// them. A program may write through one handle and read through another one, which would not find
/// in the file what a cache holds back, and what it writes would be overwritten by it later. So
/// bytes are held back only as long as there is one handle. Thread-safe.
///
/// Whoever ends a cache waits for logs, of other ranks too, and never for a call of theirs. So
/// handles may be opened and closed by ranks in any order.
class FileHandles {
 public:
  /// Those of the file `id`.
  static std::shared_ptr<FileHandles> of(const FileId& id);
  /// Whether any file of this process has a cache.
  static bool any_caches() { return caches_in_process_ > 0; }

  /// One of them, as long as it lives. Once it is there, end_caches() does for good what it says.
  class Handle {
   public:
    explicit Handle(std::shared_ptr<FileHandles> all);
    ~Handle();
    Handle(const Handle&) = delete;
    Handle& operator=(const Handle&) = delete;

    const std::shared_ptr<FileHandles>& all() const { return all_; }
    bool is_only_one() const;

   private:
    const std::shared_ptr<FileHandles> all_;
  };

  /// What a cache holds back is in the file when it returns, and it holds nothing back any more; on
  /// all ranks that it has.
  using End = std::function<Status()>;

  /// A cache of one of them, as long as it lives. Where there are other handles already, it ends as
  /// it begins; what then fails is told by its next call.
  class Cache {
   public:
    Cache(std::shared_ptr<FileHandles> all, End end);
    /// Waits until nobody ends it.
    ~Cache();
    Cache(const Cache&) = delete;
    Cache& operator=(const Cache&) = delete;

   private:
    const std::shared_ptr<FileHandles> all_;
  };

  /// Nothing is held back by any cache. An error is that of one that could not be ended; it may be
  /// tried again.
  Status end_caches();

 private:
  Status end_locked();

  static inline std::atomic<int> caches_in_process_{0};

  /// Held while a cache ends: who closes it waits for that.
  mutable std::mutex mutex_;
  int handles_ = 0;                     ///< Guarded by mutex_, as is what follows.
  std::map<const Cache*, End> caches_;  ///< Those that were not ended yet.
};

}  // namespace forebay
