#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <vector>

#include "core/storage/file.hpp"

namespace forebay {

// Fault model.
//
// A machine that loses power keeps of each file what was there at its last sync(). Of the writes
// and resizes since then it keeps any, none or all, and of a write any of its sectors of 512 bytes:
// page caches write back when and in which order they like. A process that is killed loses nothing
// of what its system calls did. Not in the model: sectors that are themselves half written, and
// bytes that are lost after a sync().

/// What becomes of what was not synced.
enum class CrashKind {
  process_killed,  ///< All of it stays.
  all_lost,        ///< Nothing of it stays.
  partly_lost,     ///< Chance decides, sector by sector.
};

/// A file in memory that remembers what of it is durable. Thread-safe.
class VolatileInode {
 public:
  explicit VolatileInode(StripeLayout layout = {}, std::string path = "volatile");
  /// A file with this content, all of it durable.
  VolatileInode(std::vector<std::byte> content, StripeLayout layout, std::string path);

  std::vector<std::byte> content() const;  ///< As a reader sees it now. A copy.
  /// The file as it is found after a crash, all of it durable.
  std::shared_ptr<VolatileInode> after_crash(CrashKind kind, std::mt19937_64& random) const;

 private:
  friend class VolatileFile;
  struct Change {
    Bytes offset = 0;
    std::vector<std::byte> bytes;  ///< Empty: a resize to `offset`.
  };

  const StripeLayout layout_;
  const std::string path_;
  mutable std::mutex mutex_;
  std::vector<std::byte> now_;  ///< Guarded by mutex_, as is what follows.
  std::vector<std::byte> durable_;
  std::vector<Change> changes_;  ///< Since the last sync.
};

/// Opens `inode` once more. Locks are granted without a look: it is for one process.
std::unique_ptr<StorageFile> open_volatile_file(std::shared_ptr<VolatileInode> inode);

}  // namespace forebay
