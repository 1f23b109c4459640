// Goal: what ranks agreed on comes back after the program has died and any nodes that the
// redundancy is good for are lost; what has come to the file since is not written over; and
// whatever becomes of the protection, the program's calls go on, and nothing of it stays. Method:
// ranks are threads, a node is a directory of its own, a crash is an end without a close, and a
// lost node is a directory that is removed; then what is left is recovered as the command does it.

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <mutex>
#include <random>

#include "core/engine/cache/recovery.hpp"
#include "core/engine/cache/sidecar.hpp"
#include "core/engine/collective/coherent_cache_rig.hpp"
#include "core/engine/collective/thread_exchange.hpp"
#include "core/engine/redundancy/lost_logs.hpp"
#include "core/model/noise.hpp"

namespace forebay {
namespace {

namespace fs = std::filesystem;
using Content = std::vector<std::byte>;
using Moment = CoherentCache::Moment;

constexpr Bytes granule = cache_granule;

class ProtectedCacheTest : public CacheTest {
 protected:
  ProtectedCacheTest() {
    hints_.cache_capacity = 32 * MiB;
    hints_.cache_flush = CacheFlush::onclose;
    hints_.cache_redundancy = CacheRedundancy{1, 1};
  }

  /// One rank of the program.
  struct Rank : OpenedCache {
    explicit Rank(Exchange& among) : exchange(among) {}

    Exchange& exchange;

    int number() const { return exchange.rank(); }
    void write(const Content& bytes, Bytes offset) const {
      EXPECT_TRUE(cache->write_at(bytes, offset));
    }
    /// The end of a collective write.
    void commit() const {
      std::int64_t epoch = static_cast<std::int64_t>(cache->epoch());
      exchange.all_reduce({&epoch, 1}, Reduce::max);
      EXPECT_TRUE(cache->commit(static_cast<std::uint64_t>(epoch) + 1));
      EXPECT_TRUE(cache->protect(Moment::commit));
    }
    void set_atomic(bool atomic) const {
      exchange.barrier();
      EXPECT_TRUE(cache->set_atomic(atomic));
      EXPECT_TRUE(cache->protect(Moment::emptied));
    }
    /// What the report would say.
    bool has_note(const std::string& part) const {
      const auto says = [&](const std::string& note) { return note.find(part) != note.npos; };
      return std::ranges::any_of(notes, says) || std::ranges::any_of(cache->notes(), says);
    }
  };

  /// Runs a program that nobody closes the file of, unless it does.
  void run(int nodes, const std::function<void(Rank&)>& body) const {
    run_ranks(nodes, 1, [&](const std::shared_ptr<Exchange>& exchange) {
      Rank rank(*exchange);
      open(*exchange, rank);
      ASSERT_NE(rank.cache, nullptr);
      body(rank);
      exchange->barrier();
    });
  }

  fs::path node(int number) const { return base_ / "local" / ("node-" + std::to_string(number)); }

  void lose(const std::vector<int>& nodes) const {
    for (const int number : nodes) ASSERT_GT(fs::remove_all(node(number)), 0U);
  }

  /// Forgets logs and notices.
  void start_anew() const {
    fs::remove_all(base_ / ".data.forebay-dirty");
    fs::remove_all(base_ / "local");
    fs::create_directory(base_ / "local");
  }

  /// What `forebay cache recover --lost all` does with the nodes that are left.
  struct Recovery {
    std::size_t rebuilt = 0;
    std::size_t not_protected = 0;
    std::size_t said_to_be_protected = 0;  ///< By the notices of those that were lost.
  };
  Recovery recover_all() const {
    std::vector<std::shared_ptr<CacheDirectory>> directories;
    for (const auto& entry : fs::directory_iterator(base_ / "local")) {
      auto directory = CacheDirectory::open(entry.path(), CacheDirectory::Access::existing);
      if (directory) directories.push_back(std::move(*directory));
    }
    std::vector<LeftLog> logs;
    std::vector<ParityContents> parity;
    StoresByName left;
    for (const auto& directory : directories) {
      const auto names = directory->logs();
      EXPECT_TRUE(names);
      for (const std::string& name : *names) {
        auto log = LogDirectory::open(directory, name, LogDirectory::Use::replace);
        EXPECT_TRUE(log);
        if (auto contents = read_parity_log(**log, ReadDepth::payloads)) {
          parity.push_back(std::move(*contents));
          logs.push_back({name, std::move(*log), LogPurpose::protection});
        } else {
          left[name] = log->get();
          logs.push_back({name, std::move(*log)});
        }
      }
    }
    Recovery recovery;
    Sidecar sidecar(path_);
    const auto notices = sidecar.read();
    EXPECT_TRUE(notices);
    for (const DirtyNotice& notice : notices->notices) {
      tell_flushed(parity, notice.log, notice.flushed);
    }
    const auto known = protected_logs(parity);
    std::vector<std::string> lost;
    for (const DirtyNotice& notice : notices->notices) {
      if (left.contains(notice.log)) continue;
      recovery.said_to_be_protected += notice.is_protected ? 1 : 0;
      if (known.contains(notice.log)) {
        lost.push_back(notice.log);
      } else {
        ++recovery.not_protected;
      }
    }
    recovery.rebuilt = lost.size();
    if (!lost.empty()) {
      auto rebuilt = rebuild_logs(directories.front(), parity, left, lost, false);
      EXPECT_TRUE(rebuilt) << to_string(rebuilt.error());
      if (rebuilt) std::ranges::move(rebuilt->logs, std::back_inserter(logs));
    }
    Counters counters;
    const auto file = open_posix_file(path_, OpenMode::read_write, counters);
    EXPECT_TRUE(file);
    parity.clear();
    const auto recovered =
        recover(**file, sidecar, std::move(logs), {.incomplete = Incomplete::drop});
    EXPECT_TRUE(recovered) << to_string(recovered.error());
    return recovery;
  }

  Content part_of_file(Bytes offset, std::size_t length) const {
    const Content content = file_content();
    if (content.size() < static_cast<std::size_t>(offset) + length) return {};
    const auto first = content.begin() + offset;
    return {first, first + static_cast<std::ptrdiff_t>(length)};
  }
  /// Logs of any kind on all nodes.
  std::size_t logs_left() const {
    std::size_t count = 0;
    for (const auto& entry : fs::directory_iterator(base_ / "local")) {
      const auto directory = CacheDirectory::open(entry.path(), CacheDirectory::Access::existing);
      if (directory) count += (*directory)->logs()->size();
    }
    return count;
  }
  void expect_no_trace() const {
    EXPECT_EQ(logs_left(), 0U);
    EXPECT_FALSE(fs::exists(base_ / ".data.forebay-dirty"));
  }
};

TEST_F(ProtectedCacheTest, WhatWasAgreedOnComesBackWhicheverNodesAreLost) {
  struct Case {
    int nodes;
    CacheRedundancy redundancy;
    std::vector<int> lost;
  };
  const std::vector<Case> cases = {
      {2, {1, 1}, {0}},    {2, {1, 1}, {1}},    {3, {2, 1}, {1}},
      {4, {3, 1}, {3}},    {4, {4, 1}, {2}},    {4, {2, 2}, {0, 1}},
      {4, {2, 2}, {1, 2}}, {4, {2, 2}, {0, 3}}, {3, {1, 2}, {0, 1}},
  };
  for (const CacheFlush flush : {CacheFlush::onclose, CacheFlush::immediate}) {
    for (const Case& c : cases) {
      start_anew();
      fs::resize_file(path_, 0);
      hints_.cache_flush = flush;
      hints_.cache_redundancy = c.redundancy;
      Content model;
      std::mutex mutex;
      run(c.nodes, [&](Rank& rank) {
        std::mt19937_64 random(static_cast<std::uint64_t>(rank.number()) + 1);
        for (int step = 0; step < 12; ++step) {
          const auto length = static_cast<std::size_t>(1 + random() % granule);
          const Bytes at = granule * (static_cast<Bytes>(random() % 20) * c.nodes + rank.number());
          const Content bytes = noise(length, random());
          // Not all of them have something in each.
          if (step % 3 != rank.number() % 3) {
            rank.write(bytes, at);
            const std::scoped_lock lock(mutex);
            model.resize(std::max(model.size(), static_cast<std::size_t>(at) + length));
            std::ranges::copy(bytes, model.begin() + at);
          }
          rank.commit();
          if (step == 6) {
            EXPECT_TRUE(rank.cache->sync());
            EXPECT_TRUE(rank.cache->protect(Moment::sync));
          }
        }
      });
      lose(c.lost);
      const Recovery recovery = recover_all();
      EXPECT_LE(recovery.rebuilt, c.lost.size());
      EXPECT_EQ(recovery.not_protected, 0U);
      EXPECT_EQ(recovery.said_to_be_protected, recovery.rebuilt);
      EXPECT_TRUE(file_content() == model);
      EXPECT_FALSE(fs::exists(base_ / ".data.forebay-dirty"));
    }
  }
}

TEST_F(ProtectedCacheTest, WithoutRedundancyALostNodeLosesWhatIsNotInTheFile) {
  hints_.cache_redundancy.reset();
  run(2, [&](Rank& rank) {
    rank.write(Content(100, std::byte{1}), granule * rank.number());
    rank.commit();
    EXPECT_FALSE(rank.cache->is_protected());
  });
  EXPECT_FALSE(fs::exists(node(0))) << "nodes share the path";
  fs::remove_all(base_ / "local" / ("forebay-cache-" + std::to_string(::geteuid())));
  const Recovery recovery = recover_all();
  EXPECT_EQ(recovery.not_protected, 2U);
  EXPECT_EQ(recovery.said_to_be_protected, 0U);
  EXPECT_EQ(fs::file_size(path_), 0U);
}

TEST_F(ProtectedCacheTest, ADelayProtectsAllAtItsEnd) {
  hints_.delayed = true;
  const Content first = noise(300'000, 1);
  const Content second = noise(200'000, 2);
  for (const bool ends : {false, true}) {
    start_anew();
    run(3, [&](Rank& rank) {
      if (rank.number() == 0) rank.write(first, 0);
      rank.commit();
      if (rank.number() == 0) rank.write(second, 100'000);
      rank.commit();
      EXPECT_EQ(rank.counters.protection_bytes, 0);
      EXPECT_EQ(rank.counters.protection_steps, 0);
      if (!ends) return;
      EXPECT_TRUE(rank.cache->set_delayed(false));
      EXPECT_EQ(rank.counters.protection_steps, 1);
      EXPECT_EQ(rank.counters.protection_bytes > 500'000, rank.number() == 0);
    });
    lose({0});
    const Recovery recovery = recover_all();
    EXPECT_EQ(recovery.rebuilt, ends ? 1U : 0U);
    EXPECT_EQ(recovery.not_protected, ends ? 0U : 1U);
  }
  EXPECT_EQ(part_of_file(0, 100'000), Content(first.begin(), first.begin() + 100'000));
  EXPECT_EQ(part_of_file(100'000, second.size()), second);
}

TEST_F(ProtectedCacheTest, WhatCameToTheFileByItselfIsNotWrittenOver) {
  const Content old = noise(1000, 1);
  const Content direct = noise(1000, 2);
  const Content last = noise(1000, 3);
  run(2, [&](Rank& rank) {
    if (rank.number() == 0) rank.write(old, 0);
    rank.commit();
    rank.set_atomic(true);
    rank.exchange.barrier();
    if (rank.number() == 0) rank.write(direct, 0);
    rank.set_atomic(false);
    if (rank.number() == 0) rank.write(last, granule);
    rank.commit();
  });
  lose({0});
  EXPECT_EQ(recover_all().rebuilt, 1U);
  EXPECT_EQ(part_of_file(0, direct.size()), direct);
  EXPECT_EQ(part_of_file(granule, last.size()), last);
}

TEST_F(ProtectedCacheTest, WhatAnotherRankWroteInBetweenIsNotWrittenOver) {
  const Content old = noise(1000, 1);
  const Content others = noise(1000, 2);
  run(2, [&](Rank& rank) {
    if (rank.number() == 0) rank.write(old, 0);
    rank.commit();
    // Whoever writes in the other's granule has it brought to the file first.
    rank.exchange.barrier();
    if (rank.number() == 1) rank.write(others, 0);
    rank.exchange.barrier();
    if (rank.number() == 0) rank.write(noise(1000, 3), 2000);
    rank.exchange.barrier();
    EXPECT_EQ(part_of_file(0, others.size()), others);
  });
  lose({0});
  EXPECT_EQ(recover_all().not_protected, 0U);
  EXPECT_EQ(part_of_file(0, others.size()), others);
}

TEST_F(ProtectedCacheTest, MoreThanTheCapacityGoesToTheFileAndStaysProtected) {
  hints_.cache_capacity = 8 * MiB;
  Content model(static_cast<std::size_t>(23 * MiB));
  run(2, [&](Rank& rank) {
    for (int step = 0; step < 12; ++step) {
      // One of them writes more in one step than a log may take.
      const Bytes length = step == 5 ? 6 * MiB : 1 * MiB;
      const Bytes at = 12 * MiB * rank.number() + (step == 5 ? 5 : step % 11) * MiB;
      const Content bytes = noise(static_cast<std::size_t>(length),
                                  static_cast<std::uint64_t>(step * 2 + rank.number()));
      std::ranges::copy(bytes, model.begin() + at);
      rank.write(bytes, at);
      rank.commit();
    }
    EXPECT_TRUE(rank.cache->is_protected());
    EXPECT_TRUE(rank.cache->notes().empty()) << rank.cache->notes().front();
  });
  lose({1});
  recover_all();
  EXPECT_TRUE(file_content() == model);
}

TEST_F(ProtectedCacheTest, AFailureEndsTheProtectionAndNothingElse) {
  const Content first = noise(50'000, 1);
  const Content second = noise(50'000, 2);
  for (const bool at_first : {true, false}) {
    start_anew();
    run(2, [&](Rank& rank) {
      const auto spoil = [&] {
        // Rank 1 keeps the copy of rank 0, and has no log of its own.
        if (rank.number() == 1) fs::remove_all(node(1));
        rank.exchange.barrier();
      };
      if (at_first) spoil();
      if (rank.number() == 0) rank.write(first, 0);
      rank.commit();
      EXPECT_EQ(rank.cache->is_protected(), !at_first);
      if (!at_first) {
        // Enough for a new segment of the copy, which has no place to be.
        spoil();
        if (rank.number() == 0) rank.write(noise(3'000'000, 3), granule * 100);
        rank.commit();
      }
      if (rank.number() == 0) rank.write(second, 25'000);
      rank.commit();
      EXPECT_FALSE(rank.cache->is_protected());
      EXPECT_TRUE(rank.has_note("no protection against the loss of nodes any more"));
      EXPECT_TRUE(rank.cache->close_early());
      rank.exchange.barrier();
    });
    EXPECT_TRUE(part_of_file(25'000, second.size()) == second);
    EXPECT_FALSE(fs::exists(base_ / ".data.forebay-dirty"));
  }
}

TEST_F(ProtectedCacheTest, ACloseLeavesNothing) {
  for (const CacheFlush flush : {CacheFlush::onclose, CacheFlush::immediate}) {
    hints_.cache_flush = flush;
    run(3, [&](Rank& rank) {
      for (int step = 0; step < 3; ++step) {
        if (rank.number() < 2) rank.write(noise(10'000, 1), 100'000 * rank.number());
        rank.commit();
      }
      EXPECT_GT(logs_left(), 0U);
      rank.exchange.barrier();
      EXPECT_EQ(rank.cache->close_early().value_or(true), false);
    });
    expect_no_trace();
    EXPECT_EQ(part_of_file(100'000, 10'000), noise(10'000, 1));
  }
}

TEST_F(ProtectedCacheTest, AnEarlyCloseKeepsTheProtectionUntilAllIsInTheFile) {
  hints_.cache_flush = CacheFlush::deferred;
  hints_.delayed = true;
  const Content bytes = noise(100'000, 1);
  for (const bool finishes : {true, false}) {
    fs::resize_file(path_, 0);
    run(2, [&](Rank& rank) {
      if (rank.number() == 0) rank.write(bytes, 0);
      rank.commit();
      EXPECT_EQ(rank.cache->close_early().value_or(false), true);
      EXPECT_EQ(rank.counters.protection_steps, 1);
      if (!finishes) return;
      rank.cache->start_finishing();
      EXPECT_TRUE(rank.cache->finish());
    });
    if (finishes) {
      expect_no_trace();
    } else {
      lose({0});
      EXPECT_EQ(recover_all().not_protected, 0U);
    }
    EXPECT_TRUE(file_content() == bytes);
  }
}

TEST_F(ProtectedCacheTest, TooFewNodesAreToldOf) {
  hints_.cache_redundancy = CacheRedundancy{4, 2};
  run(2, [&](Rank& rank) {
    EXPECT_FALSE(rank.cache->is_protected());
    EXPECT_TRUE(rank.has_note("2 pieces need more than 2 nodes, and there are 2"));
  });
}

}  // namespace
}  // namespace forebay
