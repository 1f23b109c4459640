#pragma once

#include <functional>
#include <thread>
#include <vector>

#include "core/engine/cache/dirty_extents.hpp"
#include "core/storage/file.hpp"

namespace forebay {

/// Threads that carry dirty extents from the log to the file, one unit each at a time. They make no
/// MPI call. Where the log lies in memory it is written from there; else each thread reads a unit
/// into a buffer of its own, and that is all the memory it takes. Every payload's checksum is
/// verified before a byte of it goes to the file.
class Flusher {
 public:
  /// What a thread calls besides.
  struct Hooks {
    /// It has written pieces of a unit, or tried to: from the first to the last.
    std::function<void(Extent)> wrote = [](Extent) {};
    std::function<void()> idle = [] {};  ///< There was nothing to do for a while; one thread alone.
  };
  /// What they refer to must outlive them. There are fewer threads where no more are to be had.
  Flusher(DirtyExtents& extents, StorageFile& file, int threads, Hooks hooks);
  ~Flusher();  ///< What is still dirty stays so.
  Flusher(const Flusher&) = delete;
  Flusher& operator=(const Flusher&) = delete;

  /// Why there is no thread, and nothing is ever flushed.
  const Status& begun() const { return begun_; }

 private:
  void work(bool first);

  DirtyExtents& extents_;
  StorageFile& file_;
  const Hooks hooks_;
  Status begun_;
  std::vector<std::thread> threads_;
};

}  // namespace forebay
