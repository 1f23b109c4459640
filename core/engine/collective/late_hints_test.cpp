// Goal: what of the write-behind cache is fixed when the file is opened stays so, is told to be in
// force, and a hint that asks for something else is said to be too late. Method: two ranks,
// threads, set each hint of the cache for an open file.

#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "core/engine/collective/coherent_cache_rig.hpp"
#include "core/engine/collective/collective_file.hpp"
#include "core/engine/collective/thread_exchange.hpp"

namespace forebay {
namespace {

class LateHintsTest : public CacheTest {
 protected:
  LateHintsTest() { hints_.independent_write_buffer = 64 * KiB; }

  /// Does `body` with the file, opened with hints_, on each rank. One at a time has an expectation.
  void with_file(const std::function<void(CollectiveFile&)>& body) {
    run_ranks(2, 2, [&](const std::shared_ptr<Exchange>& exchange) {
      Counters counters;
      auto storage = open_posix_file(path_, OpenMode::read_write, counters);
      ASSERT_TRUE(storage);
      const auto file = CollectiveFile::open(exchange, std::move(*storage), hints_, counters);
      body(*file);
      EXPECT_TRUE(file->close_together());
    });
  }
};

TEST_F(LateHintsTest, ACacheStaysAsItWasOpened) {
  const std::vector<HintPairs::value_type> others = {
      {"e10_cache", "disable"},
      {"forebay_cache_path", "/nowhere"},
      {"forebay_cache_flush", "onclose"},
      {"forebay_cache_capacity", "16MiB"},
      {"forebay_cache_sync", "node"},
      {"forebay_cache_discard", "disable"},
      {"forebay_cache_threads", "7"},
      {"forebay_cache_compress", "enable"},
      {"forebay_cache_redundancy", "partner"},
      {"ind_wr_buffer_size", "1MiB"},
  };
  with_file([&](CollectiveFile& file) {
    ASSERT_TRUE(file.holds_back());
    EXPECT_FALSE(file.set_hints(hints_).cache) << "the same again";
    const HintPairs opened = to_pairs(file.hints_in_force());
    for (const auto& other : others) {
      Hints hints = hints_;
      EXPECT_TRUE(apply_hints(hints, {other}, "a test").empty());
      const LateHints late = file.set_hints(hints);
      EXPECT_TRUE(late.cache) << other.first;
      EXPECT_FALSE(late.aggregators) << other.first;
      EXPECT_EQ(to_pairs(file.hints_in_force()), opened) << other.first;
    }
    Hints delayed = hints_;
    delayed.delayed = true;
    EXPECT_FALSE(file.set_hints(delayed).cache) << "made to be given later";
  });
}

TEST_F(LateHintsTest, WhatIsFlushedAtATimeIsToldAsTheCacheTakesIt) {
  hints_.independent_write_buffer = 1;
  with_file([](CollectiveFile& file) {
    EXPECT_EQ(file.hints_in_force().independent_write_buffer, 4 * KiB);
  });
}

TEST_F(LateHintsTest, AFileThatWasOpenedWithoutACacheGetsNone) {
  hints_.cache.reset();
  with_file([&](CollectiveFile& file) {
    Hints hints = hints_;
    hints.cache = true;
    EXPECT_TRUE(file.set_hints(hints).cache);
    EXPECT_FALSE(file.holds_back());
    EXPECT_FALSE(file.hints_in_force().cache.value_or(false));
    hints.cache = false;
    hints.independent_write_buffer = 1 * MiB;
    EXPECT_FALSE(file.set_hints(hints).cache) << "that is what there is";
    EXPECT_EQ(file.hints_in_force().independent_write_buffer, 1 * MiB) << "writes may be sieved";
  });
}

}  // namespace
}  // namespace forebay
