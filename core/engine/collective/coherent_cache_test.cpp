// Goal: ranks that write to logs see each other's bytes as if they wrote to the file, whoever wrote
// them, and whatever became of the logs meanwhile; and after a crash the newest bytes win.
// Method: ranks are threads, of one host or as if of several; file and logs are in a directory of
// the test's own; random schedules from a fixed seed, one step of one rank after the other, against
// a model in memory.

#include "core/engine/collective/coherent_cache.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <mutex>
#include <random>
#include <thread>

#include "core/engine/collective/coherent_cache_rig.hpp"
#include "core/engine/collective/cost_memory.hpp"
#include "core/engine/collective/thread_exchange.hpp"
#include "core/storage/layout.hpp"

namespace forebay {
namespace {

namespace fs = std::filesystem;
using Content = std::vector<std::byte>;

constexpr Bytes granule = cache_granule;

/// How many ranks share a host.
class CoherentCacheTest : public CacheTest, public ::testing::WithParamInterface<int> {
 protected:
  static void run_ranks(int ranks, const std::function<void(std::shared_ptr<Exchange>)>& body) {
    forebay::run_ranks(ranks, std::min(ranks, GetParam()), body, GetParam());
  }
  std::unique_ptr<OpenedCache> open(Exchange& exchange) const {
    auto opened = std::make_unique<OpenedCache>();
    CacheTest::open(exchange, *opened);
    return opened;
  }

  /// Rank 1 writes, then rank 0 over it.
  static void write_in_turn(Exchange& exchange, CoherentCache& cache) {
    for (const int writer : {1, 0}) {
      if (exchange.rank() == writer) {
        const Content bytes(100, static_cast<std::byte>(writer + 1));
        EXPECT_TRUE(cache.write_at(bytes, 0));
        EXPECT_TRUE(cache.commit());
      }
      exchange.barrier();
    }
  }

  /// What a schedule does, the same on all ranks.
  struct Schedule {
    unsigned seed = 0;
    int ranks = 1;
    int steps = 0;
    bool share = false;  ///< Ranks write anywhere; else each in granules of its own.
  };
  void run(const Schedule& schedule);
};

void CoherentCacheTest::run(const Schedule& schedule) {
  constexpr Bytes room = 40 * granule;
  Content model;
  std::mutex mutex;  // Of gtest's failures.
  run_ranks(schedule.ranks, [&](const std::shared_ptr<Exchange>& exchange) {
    const auto opened = open(*exchange);
    CoherentCache& cache = *opened->cache;
    std::mt19937 random(schedule.seed);
    const auto any = [&random](Bytes below) {
      return static_cast<Bytes>(random() % static_cast<std::uint64_t>(below));
    };
    const auto expect = [&mutex](bool right, const std::string& what) {
      const std::scoped_lock lock(mutex);
      EXPECT_TRUE(right) << what;
    };
    for (int step = 0; step < schedule.steps; ++step) {
      const int actor = static_cast<int>(any(schedule.ranks));
      const Bytes kind = any(20);
      Bytes offset = any(room);
      Bytes length = 1 + any(2 * granule);
      const auto fill = static_cast<std::byte>(1 + any(255));
      if (!schedule.share && kind < 10) {
        offset = offset / granule / schedule.ranks * schedule.ranks * granule + actor * granule;
        length = std::min(length, granule);
      }
      const bool mine = exchange->rank() == actor;
      const std::string told = "step " + std::to_string(step);
      if (kind < 10) {
        if (mine) {
          const Content bytes(static_cast<std::size_t>(length), fill);
          expect(cache.write_at(bytes, offset).has_value(), told + ": write");
          expect(cache.commit().has_value(), told + ": commit");
          if (static_cast<Bytes>(model.size()) < offset + length) {
            model.resize(static_cast<std::size_t>(offset + length));
          }
          std::copy(bytes.begin(), bytes.end(), model.begin() + offset);
        }
      } else if (kind < 16) {
        if (mine) {
          Content bytes(static_cast<std::size_t>(length));
          const auto got = cache.read_at(bytes, offset);
          expect(got.has_value(), told + ": read");
          const Bytes size = static_cast<Bytes>(model.size());
          const Bytes there = std::clamp<Bytes>(size - offset, 0, length);
          expect(got.value_or(-1) == there, told + ": count read");
          expect(std::equal(bytes.begin(), bytes.begin() + there,
                            model.begin() + std::min(offset, size)),
                 told + ": bytes read");
        }
      } else if (kind == 16) {
        if (mine) {
          expect(cache.size().value_or(-1) == static_cast<Bytes>(model.size()), told + ": size");
        }
      } else if (kind == 17) {
        expect(cache.sync().has_value(), told + ": sync");
        exchange->barrier();
        if (mine) expect(file_content() == model, told + ": the file after a sync");
      } else if (kind == 18) {
        expect(cache.settle().has_value(), told + ": settle");
        exchange->barrier();
        if (mine) {
          expect(cache.resize(offset).has_value(), told + ": resize");
          model.resize(static_cast<std::size_t>(offset));
        }
      } else {
        std::int64_t epoch = static_cast<std::int64_t>(cache.epoch());
        exchange->all_reduce({&epoch, 1}, Reduce::max);
        expect(cache.commit(static_cast<std::uint64_t>(epoch) + 1).has_value(), told + ": commit");
      }
      exchange->barrier();
    }
    expect(cache.close(false).has_value(), "close");
    exchange->barrier();
  });
  EXPECT_EQ(file_content(), model);
  EXPECT_EQ(logs_left(), 0);
  EXPECT_FALSE(fs::exists(base_ / ".data.forebay-dirty"));
}

TEST_P(CoherentCacheTest, RanksWithGranulesOfTheirOwnSeeEachOthersBytes) {
  for (const auto flush : {CacheFlush::immediate, CacheFlush::onsync, CacheFlush::onclose}) {
    hints_.cache_flush = flush;
    for (unsigned seed = 1; seed <= 2; ++seed) {
      fs::resize_file(path_, 0);
      run({.seed = seed, .ranks = 3, .steps = 100});
    }
  }
}

TEST_P(CoherentCacheTest, RanksThatWriteIntoEachOthersGranulesDoToo) {
  for (const auto flush : {CacheFlush::immediate, CacheFlush::onclose}) {
    hints_.cache_flush = flush;
    for (unsigned seed = 11; seed <= 12; ++seed) {
      fs::resize_file(path_, 0);
      run({.seed = seed, .ranks = 3, .steps = 100, .share = true});
    }
  }
}

TEST_P(CoherentCacheTest, WhatIsWrittenWaitsInTheLogUntilTheFileIsClosed) {
  hints_.cache_flush = CacheFlush::onclose;
  run_ranks(2, [&](const std::shared_ptr<Exchange>& exchange) {
    const auto opened = open(*exchange);
    const Content bytes(100, static_cast<std::byte>(exchange->rank() + 1));
    ASSERT_TRUE(opened->cache->write_at(bytes, exchange->rank() * granule));
    ASSERT_TRUE(opened->cache->commit());
    exchange->barrier();
    EXPECT_EQ(opened->cache->size().value_or(-1), granule + 100);
    if (exchange->rank() == 0) {
      EXPECT_EQ(fs::file_size(path_), 0U);
    }
    exchange->barrier();
    ASSERT_TRUE(opened->cache->close(false));
    exchange->barrier();
  });
  EXPECT_EQ(fs::file_size(path_), static_cast<std::uintmax_t>(granule + 100));
}

TEST_P(CoherentCacheTest, NoLullEndsDuringAWrite) {
  hints_.cache_flush = CacheFlush::deferred;
  run_ranks(1, [&](const std::shared_ptr<Exchange>& exchange) {
    OpenedCache opened;
    auto file = open_posix_file(path_, OpenMode::read_write, opened.counters);
    ASSERT_TRUE(file);
    auto place = CachePlace::find(*exchange, **file, hints_);
    ASSERT_TRUE(place);
    place->options.lull = std::chrono::milliseconds(1);
    place->options.longest_burst = std::chrono::hours(1);
    const auto cache = CoherentCache::open_at(*exchange, **file, std::move(place), hints_, granule,
                                              opened.counters, opened.notes, opened.handles);
    ASSERT_TRUE(cache);
    const auto now = [] { return std::chrono::steady_clock::now(); };
    for (const Bytes offset : {Bytes{0}, 10 * granule}) {  // The first write makes the log.
      const CoherentCache::OngoingWrite writing(cache.get());
      ASSERT_TRUE(cache->write_at(Content(100, std::byte{1}), offset));
      ASSERT_TRUE(cache->commit());
      const auto end = now() + std::chrono::milliseconds(20);
      while (now() < end) std::this_thread::yield();
      EXPECT_LE(fs::file_size(path_), static_cast<std::uintmax_t>(offset)) << "nothing is flushed";
    }
    const auto is_flushed = [&] {
      return fs::file_size(path_) > static_cast<std::uintmax_t>(10 * granule);
    };
    const auto end = now() + std::chrono::minutes(1);
    while (!is_flushed() && now() < end) std::this_thread::yield();
    EXPECT_TRUE(is_flushed());
    EXPECT_TRUE(cache->close(false));
  });
}

TEST_P(CoherentCacheTest, WhatIsDiscardedNeverReachesTheFile) {
  hints_.cache_flush = CacheFlush::onclose;
  run_ranks(1, [&](const std::shared_ptr<Exchange>& exchange) {
    const auto opened = open(*exchange);
    ASSERT_TRUE(opened->cache->write_at(Content(100, std::byte{1}), 0));
    ASSERT_TRUE(opened->cache->close(true));
  });
  EXPECT_EQ(fs::file_size(path_), 0U);
  EXPECT_EQ(logs_left(), 0);
}

TEST_P(CoherentCacheTest, AfterACrashTheRankThatWroteLastWins) {
  hints_.cache_flush = CacheFlush::onclose;
  run_ranks(2, [&](const std::shared_ptr<Exchange>& exchange) {
    const auto opened = open(*exchange);
    write_in_turn(*exchange, *opened->cache);
  });  // Nobody closes.
  EXPECT_EQ(logs_left(), 2);
  recover_logs();
  EXPECT_EQ(file_content(), Content(100, std::byte{1}));
}

/// What was flushed for good is in no log any more that could set older records right.
TEST_P(CoherentCacheTest, AfterACrashWhatWasSettledStays) {
  for (const CacheFlush flush : {CacheFlush::onclose, CacheFlush::immediate}) {
    hints_.cache_flush = flush;
    run_ranks(2, [&](const std::shared_ptr<Exchange>& exchange) {
      const auto opened = open(*exchange);
      write_in_turn(*exchange, *opened->cache);
      if (exchange->rank() == 0) {
        EXPECT_TRUE(opened->cache->settle());
      }
      exchange->barrier();
    });  // Nobody closes.
    recover_logs();
    EXPECT_EQ(file_content(), Content(100, std::byte{1}));
  }
}

/// What a rank has read of another one's log was given back without being durable.
TEST_P(CoherentCacheTest, AfterACrashWhatWentPastTheLogsIsTheNewest) {
  hints_.cache_flush = CacheFlush::onclose;
  run_ranks(2, [&](const std::shared_ptr<Exchange>& exchange) {
    const auto opened = open(*exchange);
    CoherentCache& cache = *opened->cache;
    const auto agree = [&](std::uint64_t epoch) {
      exchange->barrier();
      EXPECT_TRUE(cache.commit(epoch));
      exchange->barrier();
    };
    if (exchange->rank() == 1) {
      EXPECT_TRUE(cache.write_at(Content(100, std::byte{2}), 0));
    }
    agree(2);
    if (exchange->rank() == 0) {
      Content back(100);
      EXPECT_TRUE(cache.read_at(back, 0));
      EXPECT_EQ(back, Content(100, std::byte{2}));
      // As on a slow device: what is written next goes to the file.
      const auto trial = remembered_trial(*file_system_id(path_), *hints_.cache_path);
      for (auto way = LogTrial::Way::log; way == LogTrial::Way::log;) {
        const auto part = trial->begin(32 * KiB, false);
        way = part.way;
        if (way == LogTrial::Way::log) std::this_thread::sleep_for(std::chrono::milliseconds(6));
        trial->ended(part, true, true);
      }
    }
    agree(3);
    if (exchange->rank() == 0) {
      EXPECT_TRUE(cache.write_at(Content(100, std::byte{1}), 0));
    }
    agree(4);
  });  // Nobody closes.
  recover_logs();
  EXPECT_EQ(file_content(), Content(100, std::byte{1}));
}

TEST_P(CoherentCacheTest, WithoutAPlaceForLogsThereIsNoneAndANoteSaysWhy) {
  hints_.cache_path = (base_ / "nowhere").string();
  run_ranks(2, [&](const std::shared_ptr<Exchange>& exchange) {
    const auto opened = open(*exchange);
    EXPECT_EQ(opened->cache, nullptr);
    ASSERT_EQ(opened->notes.size(), 1U);
    EXPECT_NE(opened->notes[0].find("nowhere"), std::string::npos) << opened->notes[0];
  });
}

TEST_P(CoherentCacheTest, WhereOneRankHasNoPlaceForItsLogAllAreTold) {
  run_ranks(3, [&](const std::shared_ptr<Exchange>& exchange) {
    OpenedCache opened;
    auto file = open_posix_file(path_, OpenMode::read_write, opened.counters);
    ASSERT_TRUE(file);
    Hints hints = hints_;
    if (exchange->rank() == 2) hints.cache_path = (base_ / "nowhere").string();
    EXPECT_EQ(CoherentCache::open(*exchange, **file, hints, granule, opened.counters, opened.notes,
                                  opened.handles),
              nullptr);
    ASSERT_EQ(opened.notes.size(), 1U);
    EXPECT_NE(opened.notes[0].find("nowhere"), std::string::npos) << opened.notes[0];
  });
}

TEST_P(CoherentCacheTest, WherePathsWereSlowerThanTheFileSystemThereIsNone) {
  const CachePace slow{1 * MiB, 1'000'000'000, 1 * GiB, 1'000'000'000};
  remember_pace(*file_system_id(path_), *hints_.cache_path, slow);
  run_ranks(2, [&](const std::shared_ptr<Exchange>& exchange) {
    const auto opened = open(*exchange);
    EXPECT_EQ(opened->cache, nullptr);
    ASSERT_EQ(opened->notes.size(), 1U);
    EXPECT_NE(opened->notes[0].find("the file system 1.02e+03"), std::string::npos)
        << opened->notes[0];
  });
}

TEST_P(CoherentCacheTest, ALogThatFailsTurnsAllRanksToTheFile) {
  hints_.cache_flush = CacheFlush::onclose;
  run_ranks(2, [&](const std::shared_ptr<Exchange>& exchange) {
    const auto opened = open(*exchange);
    const auto write = [&](Bytes offset) {
      EXPECT_TRUE(opened->cache->write_at(Content(100, std::byte{7}), offset));
      EXPECT_TRUE(opened->cache->commit());
    };
    if (exchange->rank() == 0) write(0);
    exchange->barrier();
    if (exchange->rank() == 1) {
      EXPECT_TRUE(opened->cache->write_through("a test"));
    }
    exchange->barrier();
    EXPECT_EQ(fs::file_size(path_), 100U) << "what was in a log already";
    exchange->barrier();
    write(granule * (1 + exchange->rank()));
    exchange->barrier();
    EXPECT_EQ(fs::file_size(path_), static_cast<std::uintmax_t>(2 * granule + 100));
    exchange->barrier();
    EXPECT_TRUE(opened->cache->close(false));
    exchange->barrier();
  });
}

/// One rank's process has a second handle; its opening waits for nobody's calls.
TEST_P(CoherentCacheTest, ASecondHandleTurnsAllRanksToTheFile) {
  for (const CacheFlush flush : {CacheFlush::onclose, CacheFlush::deferred}) {
    hints_.cache_flush = flush;
    fs::resize_file(path_, 0);
    run_ranks(2, [&](const std::shared_ptr<Exchange>& exchange) {
      const auto opened = open(*exchange);
      const auto write = [&](Bytes offset) {
        EXPECT_TRUE(opened->cache->write_at(Content(100, std::byte{7}), offset));
        EXPECT_TRUE(opened->cache->commit());
      };
      const FileHandles::Handle first(opened->handles);
      write(granule * exchange->rank());
      exchange->barrier();
      std::optional<FileHandles::Handle> second;
      if (exchange->rank() == 0) {
        second.emplace(opened->handles);
        EXPECT_TRUE(opened->handles->end_caches());
        EXPECT_EQ(file_content().size(), granule + 100);
      }
      exchange->barrier();
      write(granule * (2 + exchange->rank()));
      exchange->barrier();
      EXPECT_EQ(file_content().size(), 3 * granule + 100);
      exchange->barrier();
      EXPECT_TRUE(opened->cache->close(false));
      exchange->barrier();
    });
    EXPECT_EQ(logs_left(), 0);
  }
}

TEST_P(CoherentCacheTest, ASecondHandleFindsWhatAnEarlyCloseLeftToBeDone) {
  hints_.cache_flush = CacheFlush::deferred;
  run_ranks(2, [&](const std::shared_ptr<Exchange>& exchange) {
    const auto opened = open(*exchange);
    EXPECT_TRUE(opened->cache->write_at(Content(100, std::byte{7}), granule * exchange->rank()));
    EXPECT_TRUE(opened->cache->commit());
    exchange->barrier();
    EXPECT_TRUE(opened->cache->close_early().value_or(false));
    exchange->barrier();
    if (exchange->rank() == 0) {
      EXPECT_TRUE(opened->handles->end_caches());
      EXPECT_EQ(file_content().size(), granule + 100);
    }
    exchange->barrier();
    opened->cache->start_finishing();
    EXPECT_TRUE(opened->cache->finish());
    exchange->barrier();
  });
  EXPECT_EQ(logs_left(), 0);
}

INSTANTIATE_TEST_SUITE_P(RanksOfAHost, CoherentCacheTest, ::testing::Values(100, 2, 1));

}  // namespace
}  // namespace forebay
