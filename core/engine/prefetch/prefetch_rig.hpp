#pragma once

// What the prefetcher's tests share: a file in memory whose version moves as its bytes do, and the
// part of whoever carries out requests.

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/engine/prefetch/served_file.hpp"
#include "core/storage/faulty_file.hpp"
#include "core/storage/fetch_source.hpp"
#include "core/storage/memory_file.hpp"

namespace forebay {

/// A file in memory, with a version as a file system keeps one: it settled long ago.
class VersionedContent {
 public:
  /// `id`: where it matters that it is no other test's.
  explicit VersionedContent(Bytes size, FileId id = {}) {
    std::vector<std::byte> bytes(static_cast<std::size_t>(size));
    std::uint32_t state = 1;
    for (std::byte& byte : bytes) {
      state = state * 1664525U + 1013904223U;
      byte = static_cast<std::byte>(state >> 24U);
    }
    version_.id = id;
    version_.size = size;
    [[maybe_unused]] const auto written = open()->write_at(bytes, 0);
  }

  std::unique_ptr<StorageFile> open() { return open_memory_file(inode_, counters_); }
  std::vector<std::byte> bytes() const { return inode_->content(); }

  FileVersion version() const {
    const std::lock_guard lock(mutex_);
    return version_;
  }

  void write(std::span<const std::byte> data, Bytes offset) {
    [[maybe_unused]] const auto written = open()->write_at(data, offset);
    const std::lock_guard lock(mutex_);
    version_.size = std::max(version_.size, offset + static_cast<Bytes>(data.size()));
    ++version_.changed_ns;
  }

  void resize(Bytes size) {
    [[maybe_unused]] const auto resized = open()->resize(size);
    const std::lock_guard lock(mutex_);
    version_.size = size;
    ++version_.changed_ns;
  }

  /// A time at which it has settled.
  static constexpr std::int64_t later_ns = 2 * settling_time_ns;

 private:
  std::shared_ptr<MemoryInode> inode_ = std::make_shared<MemoryInode>();
  Counters counters_;
  mutable std::mutex mutex_;
  FileVersion version_;
};

class MemorySource final : public FetchSource {
 public:
  explicit MemorySource(VersionedContent& content, std::shared_ptr<FaultPlan> faults = nullptr)
      : content_(content),
        file_(faults == nullptr ? content.open() : make_faulty(content.open(), faults)) {}

  Result<Bytes> read(std::span<std::byte> into, Bytes offset) override {
    return file_->read_at(into, offset);
  }
  std::optional<FileVersion> version() override { return content_.version(); }
  Bytes resident(Extent extent) override { return intersect(extent, in_page_cache).length; }
  bool tells_residence() const override { return is_told; }
  Status advise(Extent, bool) override { return {}; }
  int descriptor() const override { return -1; }
  Status write_out(Extent) override { return written_out; }

  Status written_out;
  Extent in_page_cache;
  bool is_told = true;  ///< What is there.

 private:
  VersionedContent& content_;
  const std::unique_ptr<StorageFile> file_;
};

/// Carries out one request as a queue would.
inline void carry_out(ServedFile& file, const ReadRequest& request) {
  const auto moved = request.source->read(request.into, request.offset);
  file.ended({request.tag, moved.value_or(0), moved ? 0 : EIO});
}

/// Carries out requests until the file wants none; returns how many.
inline int fetch_all(ServedFile& file) {
  int count = 0;
  while (const auto request = file.next_request()) {
    carry_out(file, *request);
    ++count;
  }
  return count;
}

}  // namespace forebay
