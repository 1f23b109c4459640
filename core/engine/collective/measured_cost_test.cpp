// Goal: what storage calls are seen to cost decides how collective calls are carried out, alike on
// every rank and without messages of its own; and what is noise, or one rank's trouble, does not.
// Method: ranks are threads; storage is memory that pretends to take a known time, on a clock that
// each thread has of its own, so that every run measures the same.

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/engine/collective/collective_file.hpp"
#include "core/engine/collective/thread_exchange.hpp"
#include "core/storage/forwarding_file.hpp"
#include "core/storage/memory_file.hpp"
#include "core/storage/piece_walk.hpp"

namespace forebay {
namespace {

/// What the clock of this thread says.
thread_local std::int64_t thread_ns = 0;

std::int64_t read_thread_clock() { return thread_ns; }

/// A file whose data calls let the clock of the calling thread go on by `cost`. Fault model: none;
/// it is slow and nothing else.
class SlowFile final : public ForwardingFile {
 public:
  SlowFile(std::unique_ptr<StorageFile> inner, std::string path, std::function<StorageCost()> cost)
      : ForwardingFile(std::move(inner)), path_(std::move(path)), cost_(std::move(cost)) {}

  Status write_pieces(std::span<const iovec> pieces, Bytes offset) override {
    pass(pieces);
    return ForwardingFile::write_pieces(pieces, offset);
  }
  Result<Bytes> read_pieces(std::span<const iovec> pieces, Bytes offset) override {
    pass(pieces);
    return ForwardingFile::read_pieces(pieces, offset);
  }
  const std::string& path() const override { return path_; }

 private:
  void pass(std::span<const iovec> pieces) const {
    thread_ns += static_cast<std::int64_t>(cost_().of(total_bytes(pieces)));
  }

  std::string path_;
  std::function<StorageCost()> cost_;
};

constexpr StorageCost slow{.call_ns = 3e6, .byte_ns = 0.4};
constexpr StorageCost page_cache{.call_ns = 700, .byte_ns = 0.3};

/// A path on no file system: what is learnt in one test is not remembered in the next.
const std::string nowhere = "/no/such/file";

/// What one rank does, and what it sees.
class Rank {
 public:
  Rank(const std::shared_ptr<Exchange>& exchange, const std::shared_ptr<MemoryInode>& inode,
       std::function<StorageCost()> cost, const std::string& path = nowhere)
      : rank_(exchange->rank()),
        ranks_(exchange->size()),
        file_(CollectiveFile::open(
            exchange,
            std::make_unique<SlowFile>(open_memory_file(inode, counters_), path, std::move(cost)),
            {}, counters_, read_thread_clock)) {}

  /// Each rank writes `pieces` pieces of `piece` bytes that lie in turn with those of the others.
  void write_interleaved(Bytes piece, Bytes pieces, std::byte fill) {
    std::vector<std::byte> data(static_cast<std::size_t>(piece * pieces), fill);
    const TiledTree view{StridedTree::contiguous(piece), rank_ * piece, ranks_ * piece};
    const auto done = file_->write_all({view, 0, buffer_of(data), piece * pieces});
    ASSERT_TRUE(done) << to_string(done.error());
  }

  /// Each rank reads them, and finds `fill`.
  void read_interleaved(Bytes piece, Bytes pieces, std::byte fill) {
    std::vector<std::byte> data(static_cast<std::size_t>(piece * pieces));
    const TiledTree view{StridedTree::contiguous(piece), rank_ * piece, ranks_ * piece};
    const auto done = file_->read_all({view, 0, buffer_of(data), piece * pieces});
    ASSERT_TRUE(done) << to_string(done.error());
    ASSERT_EQ(data, std::vector<std::byte>(data.size(), fill));
  }

  /// Each rank writes one piece behind that of the rank before.
  void write_seamless(Bytes bytes) {
    std::vector<std::byte> data(static_cast<std::size_t>(bytes), std::byte{7});
    const TiledTree view{StridedTree::contiguous(1), 0, 1};
    const auto done = file_->write_all({view, rank_ * bytes, buffer_of(data), bytes});
    ASSERT_TRUE(done) << to_string(done.error());
  }

  std::int64_t exchanged() const { return counters_.exchanged_calls.load(); }
  std::int64_t direct() const { return counters_.direct_calls.load(); }
  Bytes said() const { return counters_.metadata_bytes.load(); }
  CollectiveFile& file() { return *file_; }

 private:
  static TiledTree buffer_of(std::vector<std::byte>& data) {
    return {StridedTree::contiguous(1), reinterpret_cast<std::intptr_t>(data.data()), 1};
  }

  int rank_;
  int ranks_;
  Counters counters_;
  std::unique_ptr<CollectiveFile> file_;
};

using Body = std::function<void(Rank&, Exchange&)>;

/// Runs `body` on each of `ranks` ranks; `cost_of(rank)` is what a call of that rank takes.
void run_on(int ranks, const StripeLayout& layout,
            const std::function<StorageCost(int rank)>& cost_of, const Body& body) {
  auto inode = std::make_shared<MemoryInode>(layout);
  run_ranks(ranks, ranks, [&](const std::shared_ptr<Exchange>& exchange) {
    const int r = exchange->rank();
    Rank rank(exchange, inode, [&cost_of, r] { return cost_of(r); });
    body(rank, *exchange);
  });
}

TEST(MeasuredCost, SlowCallsAreGatheredOnceTheyWereSeen) {
  run_on(
      4, {}, [](int) { return slow; },
      [](Rank& rank, Exchange&) {
        rank.write_interleaved(64 * KiB, 8, std::byte{1});
        EXPECT_EQ(rank.direct(), 1);
        const Bytes first = rank.said();
        for (int i = 2; i <= 5; ++i) {
          rank.write_interleaved(64 * KiB, 8, std::byte{1});
          EXPECT_EQ(rank.exchanged(), i - 1);
        }
        rank.read_interleaved(64 * KiB, 8, std::byte{1});
        EXPECT_EQ(rank.direct(), 2) << "reading was not seen to be slow yet";
        rank.read_interleaved(64 * KiB, 8, std::byte{1});
        EXPECT_EQ(rank.direct(), 2);
        // A record a call: nothing was sent for the sake of the cost.
        EXPECT_EQ(rank.said() - first, 6 * 48);
        EXPECT_NE(
            rank.file().notes()[0].find("collective calls: 5 through aggregators, 2 in which"),
            std::string::npos)
            << rank.file().notes()[0];
        EXPECT_NE(rank.file().notes()[1].find("slow writing: about 3"), std::string::npos)
            << rank.file().notes()[1];
      });
}

/// Whether 64 KiB that take 3 ms are slow calls or slow bytes shows when larger calls are made.
TEST(MeasuredCost, GatheringIsGivenUpWhereBytesAreSlowAndCallsAreNot) {
  static constexpr StorageCost narrow{.call_ns = 2000, .byte_ns = 45};
  run_on(
      4, {}, [](int) { return narrow; },
      [](Rank& rank, Exchange&) {
        for (int i = 0; i < 40; ++i) rank.write_interleaved(64 * KiB, 8, std::byte{1});
        EXPECT_GT(rank.exchanged(), 0);
        const std::int64_t exchanged = rank.exchanged();
        for (int i = 0; i < 100; ++i) rank.write_interleaved(64 * KiB, 8, std::byte{1});
        EXPECT_EQ(rank.exchanged(), exchanged);
      });
}

TEST(MeasuredCost, APageCacheIsWrittenToDirectlyForEver) {
  run_on(
      4, {}, [](int) { return page_cache; },
      [](Rank& rank, Exchange&) {
        for (int i = 0; i < 20; ++i) rank.write_interleaved(64 * KiB, 8, std::byte{1});
        EXPECT_EQ(rank.direct(), 20);
      });
}

TEST(MeasuredCost, OneRankInTroubleChangesNothing) {
  run_on(
      4, {}, [](int rank) { return rank == 2 ? slow : page_cache; },
      [](Rank& rank, Exchange&) {
        for (int i = 0; i < 20; ++i) rank.write_interleaved(64 * KiB, 8, std::byte{1});
        EXPECT_EQ(rank.direct(), 20);
      });
}

TEST(MeasuredCost, OnStripesNothingIsMeasured) {
  run_on(
      2, {.stripe_size = 64 * KiB, .servers = 2}, [](int) { return page_cache; },
      [](Rank& rank, Exchange&) {
        for (int i = 0; i < 10; ++i) rank.write_interleaved(16 * KiB, 8, std::byte{1});
        EXPECT_EQ(rank.exchanged(), 10);
        EXPECT_EQ(rank.file().notes(),
                  std::vector<std::string>{"collective calls: 10 through aggregators"});
      });
}

/// Where every view is one long piece, ranks make calls without asking each other; they notice all
/// the same that calls are slow, and go on asking from then on.
TEST(MeasuredCost, SeamlessViewsAreAskedAboutAgainWhereCallsAreSlow) {
  run_on(
      8, {}, [](int) { return slow; },
      [](Rank& rank, Exchange&) {
        for (int i = 0; i < 9; ++i) rank.write_seamless(100);
        EXPECT_EQ(rank.direct(), 9);
        for (int i = 1; i <= 20; ++i) {
          const Bytes before = rank.said();
          rank.write_seamless(100);
          EXPECT_EQ(rank.exchanged(), i) << "eight short pieces are one call";
          EXPECT_EQ(rank.said() - before, 48);
        }
        // Long ones are still written by each rank itself, which asks before.
        const std::int64_t direct = rank.direct();
        for (int i = 1; i <= 20; ++i) {
          const Bytes before = rank.said();
          rank.write_seamless(MiB);
          EXPECT_EQ(rank.direct(), direct + i);
          EXPECT_GT(rank.said(), before);
        }
      });
}

TEST(MeasuredCost, SeamlessViewsOnAPageCacheAreAskedAboutMoreAndMoreRarely) {
  run_on(
      4, {}, [](int) { return page_cache; },
      [](Rank& rank, Exchange&) {
        rank.write_seamless(100);
        const Bytes first = rank.said();
        for (int i = 0; i < 1000; ++i) rank.write_seamless(100);
        EXPECT_EQ(rank.direct(), 1001);
        // After 8, 64 and 512 calls.
        EXPECT_EQ(rank.said() - first, 3 * 48);
      });
}

/// Beyond 64 ranks a known call is agreed on by a reduction, which carries the costs too.
TEST(MeasuredCost, ManyRanksHearEachOtherByReduction) {
  run_on(
      66, {}, [](int) { return slow; },
      [](Rank& rank, Exchange&) {
        rank.write_interleaved(16 * KiB, 4, std::byte{1});
        EXPECT_EQ(rank.direct(), 1);
        rank.write_interleaved(16 * KiB, 4, std::byte{2});
        EXPECT_EQ(rank.exchanged(), 1);
        rank.read_interleaved(16 * KiB, 4, std::byte{2});
      });
}

/// A program that makes one call a file learns from file to file of one file system.
TEST(MeasuredCost, TheNextFileStartsWhereTheLastOneEnded) {
  run_ranks(4, 4, [](const std::shared_ptr<Exchange>& exchange) {
    const auto write_once = [&exchange](const std::string& path) {
      const auto inode = std::make_shared<MemoryInode>();
      Rank rank(exchange, inode, [] { return slow; }, path);
      rank.write_interleaved(64 * KiB, 8, std::byte{1});
      return rank.exchanged();
    };
    // Files of the kernel, on file systems of their own.
    EXPECT_EQ(write_once("/proc/version"), 0);
    EXPECT_EQ(write_once("/proc/uptime"), 1);
    EXPECT_EQ(write_once("/sys/kernel/notes"), 0)
        << "another file system is not judged by the first";
  });
}

/// Whatever each rank measures, and however that changes, all take the same path (a rank that took
/// another would wait for ever) and the bytes are right.
RC_GTEST_PROP(MeasuredCostProperty, RanksStayTogether, ()) {
  const int ranks = *rc::gen::inRange(1, 6);
  const std::vector<StorageCost> costs{page_cache, slow, {.call_ns = 5e4, .byte_ns = 80}};
  struct Step {
    bool writing;
    bool seamless;
    Bytes piece;
    std::array<std::size_t, 6> cost;  ///< By rank.
  };
  const auto steps = *rc::gen::resize(
      25, rc::gen::container<std::vector<Step>>(rc::gen::exec([&costs] {
        Step step{};
        step.writing = *rc::gen::arbitrary<bool>();
        step.seamless = *rc::gen::arbitrary<bool>();
        step.piece = *rc::gen::element<Bytes>(8, 1000, 64 * KiB, 300 * KiB);
        const auto common = *rc::gen::inRange<std::size_t>(0, costs.size());
        for (std::size_t& cost : step.cost) {
          cost = *rc::gen::weightedElement<std::size_t>({{4, common}, {1, 0}, {1, 1}});
        }
        return step;
      })));
  std::vector<std::int64_t> exchanged(static_cast<std::size_t>(ranks));
  std::array<std::atomic<std::size_t>, 6> now{};
  run_on(
      ranks, {}, [&](int rank) { return costs[now[static_cast<std::size_t>(rank)].load()]; },
      [&](Rank& rank, Exchange& exchange) {
        const auto me = static_cast<std::size_t>(exchange.rank());
        for (std::size_t i = 0; i < steps.size(); ++i) {
          const Step& step = steps[i];
          now[me] = step.cost[me];
          const auto fill = static_cast<std::byte>(i + 1);
          if (step.seamless) {
            rank.write_seamless(step.piece);
          } else {
            rank.write_interleaved(step.piece, 5, fill);
          }
          exchange.barrier();
          if (!step.writing && !step.seamless) rank.read_interleaved(step.piece, 5, fill);
          exchange.barrier();
        }
        exchanged[me] = rank.exchanged();
      });
  RC_ASSERT(std::vector<std::int64_t>(exchanged.size(), exchanged[0]) == exchanged);
  RC_ASSERT(!testing::Test::HasFailure());
}

}  // namespace
}  // namespace forebay
