// Goal: each hint of the cache is what the cache is made with, in either spelling, and no value of
// one makes it useless. Method: the options of a place that is found by one rank.

#include "core/engine/collective/cache_place.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>

#include "core/engine/cache/log_directory.hpp"
#include "core/engine/collective/coherent_cache_rig.hpp"
#include "core/engine/collective/hardware.hpp"
#include "core/engine/collective/thread_exchange.hpp"

namespace forebay {
namespace {

namespace fs = std::filesystem;

class CachePlaceTest : public CacheTest {
 protected:
  /// With these hints, beside those of the rig.
  CacheOptions options(const HintPairs& pairs, int ranks = 1) const {
    Hints hints = hints_;
    EXPECT_TRUE(apply_hints(hints, pairs, "a test").empty());
    CacheOptions found;
    run_ranks(ranks, ranks, [&](const std::shared_ptr<Exchange>& exchange) {
      Counters counters;
      const auto file = open_posix_file(path_, OpenMode::read_write, counters);
      ASSERT_TRUE(file);
      const auto place = CachePlace::find(*exchange, **file, hints);
      ASSERT_TRUE(place) << to_string(place.error());
      if (exchange->rank() == 0) found = place->options;
    });
    return found;
  }
};

TEST_F(CachePlaceTest, WithoutHintsAllGoesToTheFileAndNoLogStays) {
  const CacheOptions options = this->options({});
  EXPECT_EQ(options.flush, CacheFlush::immediate);
  EXPECT_EQ(options.sync, SyncScope::file);
  EXPECT_FALSE(options.keep_log);
  EXPECT_EQ(options.flush_threads, 0) << "as many as the servers ask for";
  EXPECT_EQ(options.flush_bytes, CacheOptions().flush_bytes);
  EXPECT_EQ(options.log.compress, Toggle::automatic);
  EXPECT_NE(options.trial, nullptr) << "a slow log is compared with the file";
}

TEST_F(CachePlaceTest, ThreadsAreThoseOfTheHint) {
  EXPECT_EQ(options({{"forebay_cache_threads", "7"}}).flush_threads, 7);
  EXPECT_EQ(options({{"e10_cache_threads", "3"}}).flush_threads, 3);
}

TEST_F(CachePlaceTest, LogsAreKeptWhereTheyAreNotToBeDiscarded) {
  for (const char* key : {"forebay_cache_discard", "e10_cache_discard_flag"}) {
    EXPECT_TRUE(options({{key, "disable"}}).keep_log) << key;
    EXPECT_EQ(options({{key, "disable"}}).trial, nullptr) << "all of it is to be in the log";
    EXPECT_FALSE(options({{key, "enable"}}).keep_log) << key;
  }
}

TEST_F(CachePlaceTest, ASyncIsOfTheNodeOrOfTheFile) {
  const CacheOptions node = options({{"forebay_cache_sync", "node"}});
  EXPECT_EQ(node.sync, SyncScope::node);
  EXPECT_EQ(node.trial, nullptr) << "what is synced there must not go past the log";
  EXPECT_EQ(options({{"forebay_cache_sync", "file"}}).sync, SyncScope::file);
}

TEST_F(CachePlaceTest, LogsAreCompressedAsTheHintSays) {
  EXPECT_EQ(options({{"forebay_cache_compress", "enable"}}).log.compress, Toggle::enable);
  EXPECT_EQ(options({{"forebay_cache_compress", "disable"}}).log.compress, Toggle::disable);
}

TEST_F(CachePlaceTest, LogsAreFlushedWhenTheHintSays) {
  const CacheOptions none = options({{"forebay_cache_flush", "none"}});
  EXPECT_EQ(none.flush, CacheFlush::none);
  EXPECT_EQ(none.trial, nullptr) << "nothing is to go to the file";
  EXPECT_EQ(options({{"forebay_cache_flush", "onsync"}}).flush, CacheFlush::onsync);
  EXPECT_EQ(options({{"e10_cache_flush_flag", "flush_onclose"}}).flush, CacheFlush::onclose);
  const CacheOptions deferred = options({{"forebay_cache_flush", "deferred"}});
  EXPECT_EQ(deferred.flush, CacheFlush::deferred);
  EXPECT_GT(deferred.lull.count(), 0);
}

TEST_F(CachePlaceTest, WhatIsFlushedAtATimeIsNeitherAByteNorTheWholeMemory) {
  const auto flushed = [&](const std::string& size) {
    return options({{"ind_wr_buffer_size", size}}).flush_bytes;
  };
  EXPECT_EQ(flushed("512KiB"), 512 * KiB);
  EXPECT_EQ(flushed("1"), 4 * KiB);
  EXPECT_EQ(flushed("9223372036854775807"), 256 * MiB);
}

TEST_F(CachePlaceTest, SegmentsInMemoryAreMadeAheadWhereThereIsACoreForIt) {
  std::string memory = "/dev/shm/forebay-place-XXXXXX";
  if (::mkdtemp(memory.data()) == nullptr) GTEST_SKIP() << "no /dev/shm here";
  const int cores = usable_cores().count();
  const auto ahead = [&](const HintPairs& pairs, int ranks) {
    return options(pairs, ranks).log.ahead;
  };
  EXPECT_FALSE(ahead({{"forebay_cache_path", memory}}, cores));
  EXPECT_EQ(ahead({{"forebay_cache_path", memory}}, 1), cores > 1);
  fs::remove_all(memory);
}

TEST_F(CachePlaceTest, SegmentsOnADeviceAreMadeAheadOnACoreOfTheRanksToo) {
  const auto directory = CacheDirectory::open(*hints_.cache_path, CacheDirectory::Access::create);
  ASSERT_TRUE(directory) << to_string(directory.error());
  if ((*directory)->in_memory()) GTEST_SKIP() << "temporary files are in memory here";
  EXPECT_TRUE(options({}, usable_cores().count()).log.ahead);
}

/// What goes beyond the limit of a job ends it; a full log only makes its writers wait.
TEST(UsualCapacity, LeavesMostOfTheJobsMemoryToTheProgram) {
  EXPECT_EQ(usual_capacity(128 * GiB, std::nullopt), 32 * GiB);
  EXPECT_EQ(usual_capacity(128 * GiB, 16 * GiB), 4 * GiB);
  EXPECT_EQ(usual_capacity(8 * GiB, 16 * GiB), 2 * GiB);
  EXPECT_EQ(usual_capacity(128 * GiB, 0), 8 * MiB) << "the least that is of use";
}

}  // namespace
}  // namespace forebay
