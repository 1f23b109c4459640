#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <vector>

#include "core/engine/cache/log_store.hpp"
#include "core/storage/faulty_file.hpp"
#include "core/storage/volatile_file.hpp"

namespace forebay {

/// A log's files in memory, for tests: what a crash leaves of them can be looked at, damaged and
/// read again. It outlives the LogStores that are opened on it. Thread-safe.
///
/// Names are kept as a journalling file system keeps them: after a crash, the changes up to some
/// moment since the last sync() are there, and none of the later ones.
class MemoryLog {
 public:
  using Content = std::vector<std::byte>;
  using Files = std::map<std::string, std::shared_ptr<VolatileInode>>;

  MemoryLog() = default;
  explicit MemoryLog(const std::map<std::string, Content>& files);

  /// Files that are created or opened through it have the faults of `plan`; creating one counts as
  /// an `allocate`.
  std::unique_ptr<LogStore> open(std::shared_ptr<FaultPlan> plan = nullptr);

  /// What files hold now, by name. A copy.
  std::map<std::string, Content> files() const;
  std::shared_ptr<MemoryLog> after_crash(CrashKind kind, std::mt19937_64& random) const;
  bool destroyed() const;

 private:
  friend class MemoryLogStore;
  void renamed() { name_sets_.push_back(files_); }

  mutable std::mutex mutex_;
  Files files_;                            ///< Guarded by mutex_, as is what follows.
  std::vector<Files> name_sets_{Files{}};  ///< At the last sync, and after each change since.
  bool destroyed_ = false;
};

}  // namespace forebay
