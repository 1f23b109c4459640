#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/engine/cache/cached_file.hpp"
#include "core/engine/cache/memory_log_store.hpp"
#include "core/storage/faulty_file.hpp"
#include "core/storage/volatile_file.hpp"

namespace forebay {

inline std::vector<std::byte> filled(std::size_t size, int value) {
  return std::vector<std::byte>(size, static_cast<std::byte>(value));
}

/// What is in the first `size` bytes of it.
inline std::vector<std::byte> read_all(StorageFile& file, Bytes size) {
  std::vector<std::byte> content(static_cast<std::size_t>(size));
  const auto got = file.read_at(content, 0);
  EXPECT_TRUE(got);
  content.resize(static_cast<std::size_t>(got.value_or(0)));
  return content;
}

/// A CachedFile for tests: log and file in memory, with faults on either side.
struct CacheRig {
  using Content = std::vector<std::byte>;

  std::shared_ptr<VolatileInode> file = std::make_shared<VolatileInode>();
  std::shared_ptr<MemoryLog> log = std::make_shared<MemoryLog>();
  std::shared_ptr<FaultPlan> file_plan = std::make_shared<FaultPlan>();
  std::shared_ptr<FaultPlan> log_plan = std::make_shared<FaultPlan>();
  std::shared_ptr<Resource> capacity = std::make_shared<Resource>("cache.local", 64 * MiB);
  CacheOptions options = small_options();
  int rank = 0;

  static CacheOptions small_options() {
    CacheOptions options;
    options.announce = false;
    options.flush_threads = 2;
    options.flush_bytes = 2 * KiB;
    options.log = {32 * KiB, 1 * KiB};
    return options;
  }

  std::unique_ptr<CachedFile> open() const {
    LogIdentity identity;
    identity.log = "log-" + std::to_string(rank);
    identity.file.path = "/scratch/a";
    identity.rank = rank;
    auto cached = CachedFile::open(make_faulty(open_volatile_file(file), file_plan),
                                   log->open(log_plan), identity, capacity, options);
    return cached ? std::move(*cached) : nullptr;
  }
};

/// A trial that the log loses when it is said to: until then everything goes to the log, from then
/// on what may goes to the file.
struct TrialRig {
  std::shared_ptr<std::atomic<std::int64_t>> now_ns =
      std::make_shared<std::atomic<std::int64_t>>(0);
  std::shared_ptr<LogTrial> trial =
      std::make_shared<LogTrial>([now_ns = now_ns] { return now_ns->load(); });

  void lose() const {
    while (!trial->lost() && !trial->is_over()) {
      if (trial->takes_probe()) {
        while (trial->probed(32 * KiB, 10'000'000, true)) {
        }
      }
      const LogTrial::Part part = trial->begin(512 * KiB, false);
      *now_ns += part.way == LogTrial::Way::log ? 10'000'000 : 30'000'000;
      trial->ended(part, true, true);
    }
  }
};

/// What a file should hold: written as a file is, without a cache.
class FileModel {
 public:
  using Content = std::vector<std::byte>;

  void write(Bytes offset, const Content& bytes) {
    if (bytes.empty()) return;
    const auto at = static_cast<std::size_t>(offset);
    if (content_.size() < at + bytes.size()) content_.resize(at + bytes.size());
    std::copy(bytes.begin(), bytes.end(), content_.begin() + offset);
  }
  void resize(Bytes size) { content_.resize(static_cast<std::size_t>(size)); }
  void allocate(Bytes size) {
    if (size > this->size()) resize(size);
  }
  Bytes size() const { return static_cast<Bytes>(content_.size()); }
  Content read(Bytes offset, Bytes length) const {
    const Bytes begin = std::min(offset, size());
    const Bytes end = std::min(offset + length, size());
    return {content_.begin() + begin, content_.begin() + end};
  }
  const Content& content() const { return content_; }

 private:
  Content content_;
};

}  // namespace forebay
