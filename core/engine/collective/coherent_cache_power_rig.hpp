#pragma once

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/engine/cache/forwarding_log_store.hpp"
#include "core/engine/cache/memory_log_store.hpp"
#include "core/engine/collective/coherent_cache_rig.hpp"
#include "core/engine/collective/exchange.hpp"
#include "core/storage/faulty_file.hpp"
#include "core/storage/forwarding_file.hpp"
#include "core/storage/volatile_file.hpp"

namespace forebay {

// Fault model.
//
// All ranks stop at one moment, with the machine or because they are killed: from some change on
// that any of them makes to the file or to a log, none is made any more. Each such call fails with
// EIO from then on, so that whoever makes it comes to an end. What then becomes of the changes
// before it, VolatileFile and MemoryLog say. Not in the model: changes that are made by halves.

class Power {
 public:
  /// The change after so many more is not made, nor is any after it.
  void stops_after(std::int64_t changes) { left_ = changes; }
  bool on() const { return left_ > 0; }
  /// Error: it is not made.
  Status change() {
    if (left_.fetch_sub(1) > 0) return {};
    return tl::unexpected(error_from_errno(EIO, "go on without power"));
  }

 private:
  std::atomic<std::int64_t> left_{std::numeric_limits<std::int64_t>::max()};
};

class PoweredFile final : public ForwardingFile {
 public:
  PoweredFile(std::unique_ptr<StorageFile> inner, Power& power)
      : ForwardingFile(std::move(inner)), power_(power) {}
  Status write_pieces(std::span<const iovec> pieces, Bytes offset) override {
    const Status on = power_.change();
    return on ? ForwardingFile::write_pieces(pieces, offset) : on;
  }
  Status resize(Bytes size) override {
    const Status on = power_.change();
    return on ? ForwardingFile::resize(size) : on;
  }
  Status allocate(Bytes size) override {
    const Status on = power_.change();
    return on ? ForwardingFile::allocate(size) : on;
  }
  void lengthen(Bytes size) override {
    if (power_.change()) ForwardingFile::lengthen(size);
  }
  Status sync() override {
    const Status on = power_.change();
    return on ? ForwardingFile::sync() : on;
  }

 private:
  Power& power_;
};

class PoweredStore final : public ForwardingLogStore {
 public:
  PoweredStore(std::unique_ptr<LogStore> inner, Power& power)
      : ForwardingLogStore(std::move(inner)), power_(power) {}
  Result<LogFile> create(const std::string& name, Bytes size) override {
    if (const Status on = power_.change(); !on) return tl::unexpected(on.error());
    auto file = ForwardingLogStore::create(name, size);
    if (file) file->storage = std::make_unique<PoweredFile>(std::move(file->storage), power_);
    return file;
  }
  Result<std::unique_ptr<StorageFile>> open(const std::string& name) override {
    auto file = ForwardingLogStore::open(name);
    if (!file) return file;
    return std::make_unique<PoweredFile>(std::move(*file), power_);
  }
  Status rename(const std::string& from, const std::string& to) override {
    const Status on = power_.change();
    return on ? ForwardingLogStore::rename(from, to) : on;
  }
  Status remove(const std::string& name) override {
    const Status on = power_.change();
    return on ? ForwardingLogStore::remove(name) : on;
  }
  Status sync() override {
    const Status on = power_.change();
    return on ? ForwardingLogStore::sync() : on;
  }
  Status destroy() override {
    const Status on = power_.change();
    return on ? ForwardingLogStore::destroy() : on;
  }

 private:
  Power& power_;
};

/// A file and the logs of its ranks, on one machine that may lose power; calls to either may fail.
struct PoweredRig {
  /// `path`: of a file that is there, and whose name it has.
  PoweredRig(int ranks, const std::string& path, StripeLayout layout = {})
      : file(std::make_shared<VolatileInode>(layout, path)),
        log_plans(static_cast<std::size_t>(ranks)) {
    for (int rank = 0; rank < ranks; ++rank) logs.push_back(std::make_shared<MemoryLog>());
    options.announce = false;
    options.flush_threads = 2;
    options.flush_bytes = 4 * KiB;
    options.log = {16 * KiB, 1 * KiB};
    options.patience = std::chrono::milliseconds(100);
  }

  Power power;
  std::shared_ptr<VolatileInode> file;
  std::vector<std::shared_ptr<MemoryLog>> logs;  ///< By rank.
  std::shared_ptr<FaultPlan> file_plan = std::make_shared<FaultPlan>();
  std::vector<std::shared_ptr<FaultPlan>> log_plans;  ///< By rank; null: no call fails.
  std::shared_ptr<Resource> capacity = std::make_shared<Resource>("cache.local", 64 * MiB);
  CacheOptions options;

  /// Collective.
  std::unique_ptr<OpenedCache> open(Exchange& exchange) {
    auto opened = std::make_unique<OpenedCache>();
    const auto me = static_cast<std::size_t>(exchange.rank());
    opened->file =
        std::make_unique<PoweredFile>(make_faulty(open_volatile_file(file), file_plan), power);
    CachePlace place;
    place.path = "powered";
    place.options = options;
    place.capacity = capacity;
    place.rank = exchange.rank();
    place.ranks = exchange.size();
    place.host = "node";
    place.make_store = [this, me](const std::string&) -> Result<std::unique_ptr<LogStore>> {
      return std::make_unique<PoweredStore>(logs[me]->open(log_plans[me]), power);
    };
    opened->cache =
        CoherentCache::open_at(exchange, *opened->file, std::move(place), Hints(), cache_granule,
                               opened->counters, opened->notes, opened->handles);
    return opened;
  }

  /// What a crash leaves.
  struct Left {
    std::vector<std::shared_ptr<MemoryLog>> logs;
    std::shared_ptr<VolatileInode> file;
  };
  Left after_crash(CrashKind kind, std::mt19937_64& random) const {
    Left left;
    for (const auto& log : logs) left.logs.push_back(log->after_crash(kind, random));
    left.file = file->after_crash(kind, random);
    return left;
  }
};

}  // namespace forebay
