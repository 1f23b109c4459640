#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "core/engine/cache/log_directory.hpp"
#include "core/engine/cache/recovery.hpp"
#include "core/engine/cache/sidecar.hpp"
#include "core/engine/collective/claims_server.hpp"
#include "core/engine/collective/coherent_cache.hpp"

// What tests of the cache among ranks share.

namespace forebay {

constexpr Bytes cache_granule = 4 * KiB;

/// One rank's opening of the file.
struct OpenedCache {
  Counters counters;
  std::unique_ptr<StorageFile> file;
  /// Of the rank as a process.
  std::shared_ptr<FileHandles> handles = std::make_shared<FileHandles>();
  std::vector<std::string> notes;
  std::unique_ptr<CoherentCache> cache;
};

/// A file in a directory of the test's own, and beside it the node-local path "local".
class CacheTest : public ::testing::Test {
 protected:
  using Content = std::vector<std::byte>;

  CacheTest() {
    std::string name = std::filesystem::temp_directory_path() / "forebay-cache-XXXXXX";
    base_ = ::mkdtemp(name.data());
    path_ = (base_ / "data").string();
    make_files();
    hints_.cache = true;
    hints_.cache_path = (base_ / "local").string();
    hints_.cache_capacity = 64 * MiB;
  }
  ~CacheTest() override {
    ClaimsServer::await_retired();
    std::filesystem::remove_all(base_);
  }

  void make_files() const {
    std::filesystem::create_directories(base_ / "local");
    std::ofstream(path_).close();
  }

  /// Collective. The cache is null where there can be none.
  void open(Exchange& exchange, OpenedCache& opened) const {
    auto file = open_posix_file(path_, OpenMode::read_write, opened.counters);
    ASSERT_TRUE(file);
    opened.file = std::move(*file);
    opened.cache = CoherentCache::open(exchange, *opened.file, hints_, cache_granule,
                                       opened.counters, opened.notes, opened.handles);
  }

  Content file_content() const {
    std::ifstream file(path_, std::ios::binary);
    EXPECT_TRUE(file);
    const std::string bytes{std::istreambuf_iterator<char>(file), {}};
    const auto* first = reinterpret_cast<const std::byte*>(bytes.data());
    return {first, first + bytes.size()};
  }

  int logs_left() const {
    const auto directory = CacheDirectory::open(base_ / "local", CacheDirectory::Access::existing);
    return directory ? static_cast<int>((*directory)->logs()->size()) : 0;
  }

  /// Replays all logs that are left.
  void recover_logs(const RecoveryChoices& choices = {}) const {
    const auto directory = CacheDirectory::open(base_ / "local", CacheDirectory::Access::existing);
    ASSERT_TRUE(directory);
    const auto names = (*directory)->logs();
    ASSERT_TRUE(names);
    std::vector<LeftLog> left;
    for (const std::string& name : *names) {
      auto log = LogDirectory::open(*directory, name, LogDirectory::Use::replace);
      ASSERT_TRUE(log);
      left.push_back({name, std::move(*log)});
    }
    Counters counters;
    const auto file = open_posix_file(path_, OpenMode::read_write, counters);
    ASSERT_TRUE(file);
    Sidecar sidecar(path_);
    const auto recovered = recover(**file, sidecar, std::move(left), choices);
    ASSERT_TRUE(recovered) << to_string(recovered.error());
  }

  std::filesystem::path base_;
  std::string path_;
  Hints hints_;
};

}  // namespace forebay
