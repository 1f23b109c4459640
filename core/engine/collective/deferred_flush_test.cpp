// Goal: under `deferred`, nothing is flushed while the ranks of a collective write wait for each
// other, however long that takes, within half a second.
// Method: a rank whose agreements take three lulls looks at the file then. A machine that is busy
// for half a second is no error: one attempt of many has to succeed.

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <utility>

#include "core/engine/collective/coherent_cache_rig.hpp"
#include "core/engine/collective/collective_file.hpp"
#include "core/engine/collective/collective_rig.hpp"
#include "core/engine/collective/forwarding_exchange.hpp"
#include "core/engine/collective/thread_exchange.hpp"

namespace forebay {
namespace {

namespace fs = std::filesystem;

class LateExchange final : public ForwardingExchange {
 public:
  LateExchange(std::shared_ptr<Exchange> inner, std::string path)
      : ForwardingExchange(std::move(inner)), path_(std::move(path)) {}
  void all_reduce(std::span<std::int64_t> values, Reduce op) override {
    if (late_) look_late();
    ForwardingExchange::all_reduce(values, op);
  }
  void be_late(bool late) { late_ = late; }
  bool found_any() const { return found_any_; }
  int looks() const { return looks_; }

 private:
  void look_late() {
    const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(150);
    while (std::chrono::steady_clock::now() < end) std::this_thread::yield();
    found_any_ = found_any_ || fs::file_size(path_) > 0;
    ++looks_;
  }

  const std::string path_;
  bool late_ = false;
  bool found_any_ = false;
  int looks_ = 0;
};

class DeferredFlush : public CacheTest {
 protected:
  DeferredFlush() {
    hints_.cache_flush = CacheFlush::deferred;
    hints_.cache_sync_to_node = true;  // Else a log on a slow device is compared with the file.
  }

  /// Writes a new file. Whether anything was in it before the call was done.
  bool flushed_within_a_write() {
    std::ofstream(path_, std::ios::trunc).close();
    bool flushed = false;
    run_ranks(1, 1, [&](const std::shared_ptr<Exchange>& exchange) {
      Counters counters;
      auto storage = open_posix_file(path_, OpenMode::read_write, counters);
      ASSERT_TRUE(storage);
      const auto late = std::make_shared<LateExchange>(exchange, path_);
      const auto file = CollectiveFile::open(late, std::move(*storage), hints_, counters);
      ASSERT_TRUE(file->holds_back());
      Content data(100 * KiB, std::byte{1});
      const TiledTree view{StridedTree::contiguous(1), 0, 1};
      late->be_late(true);
      ASSERT_TRUE(file->write_all({view, 0, buffer_at(data.data()), 100 * KiB}));
      late->be_late(false);
      flushed = late->found_any();
      EXPECT_GE(late->looks(), 1) << "ranks agree on the end of the call";
      ASSERT_TRUE(file->close_together());
      EXPECT_GT(counters.cache_absorbed.load(), 0);
    });
    EXPECT_EQ(file_content(), Content(100 * KiB, std::byte{1}));
    return flushed;
  }
};

TEST_F(DeferredFlush, WaitsForTheEndOfACollectiveWrite) {
  bool flushed = true;
  for (int attempt = 0; attempt < 20 && flushed; ++attempt) flushed = flushed_within_a_write();
  EXPECT_FALSE(flushed);
}

}  // namespace
}  // namespace forebay
