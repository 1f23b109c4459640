#pragma once

#include <condition_variable>
#include <cstddef>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "core/storage/file.hpp"

namespace forebay {

/// A file that exists in memory only, for tests: it is to MemoryFiles what an inode is to
/// descriptors. Grows as it is written; what was never written reads as zeros. Thread-safe.
class MemoryInode {
 public:
  explicit MemoryInode(StripeLayout layout = {}, std::string path = "memory");

  std::vector<std::byte> content() const;  ///< A copy.

 private:
  friend class MemoryFile;
  struct Lock {
    const void* owner;
    Extent range;
    StorageFile::LockKind kind;
  };
  bool conflicts(const Lock& wanted) const;

  const StripeLayout layout_;
  const std::string path_;
  mutable std::mutex mutex_;
  std::condition_variable unlocked_;
  std::vector<std::byte> bytes_;  ///< Guarded by mutex_, as are the locks.
  std::vector<Lock> locks_;
};

/// Opens `inode` once more. Each opening is an owner of locks of its own. Calls and bytes are
/// counted in `counters`, which must outlive the file; each StorageFile call that moves bytes
/// counts as one. Errors: invalid_argument for negative offsets, no_space beyond 64 GiB, no_memory.
std::unique_ptr<StorageFile> open_memory_file(std::shared_ptr<MemoryInode> inode,
                                              Counters& counters);

}  // namespace forebay
