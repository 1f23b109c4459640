// Goal: with a cache, what ranks write one behind the other does not travel on a striped file; on
// any, all that they write together waits in logs; and whatever they write, call after call and
// file after file, is read by all of them, and is in the file at the end. Method: ranks are threads
// of one or several nodes, each writes to a log of its own, which is looked at whenever ranks agree
// on something; bytes of messages and of logs are counted, and the file is compared with a model
// that takes the calls in order.

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "core/engine/cache/log_contents.hpp"
#include "core/engine/cache/log_directory.hpp"
#include "core/engine/collective/coherent_cache_rig.hpp"
#include "core/engine/collective/collective_file.hpp"
#include "core/engine/collective/collective_rig.hpp"
#include "core/engine/collective/forwarding_exchange.hpp"
#include "core/engine/collective/thread_exchange.hpp"
#include "core/storage/forwarding_file.hpp"

namespace forebay {
namespace {

constexpr int ranks = 8;
constexpr Bytes stripe = 4 * KiB;  ///< And the granule, also without stripes.

/// A file that says it is striped.
class StripedFile final : public ForwardingFile {
 public:
  explicit StripedFile(std::unique_ptr<StorageFile> inner) : ForwardingFile(std::move(inner)) {}
  StripeLayout layout() const override {
    return {.stripe_size = stripe, .servers = 4, .lock_conflicts = true};
  }
};

/// Where ranks agree on something, no log below `local` of this one's ends with a part of a call:
/// as soon as another rank knows of the end of a call, it may return.
class WatchedExchange final : public ForwardingExchange {
 public:
  WatchedExchange(std::shared_ptr<Exchange> inner, std::string local)
      : ForwardingExchange(std::move(inner)), local_(std::move(local)) {}
  void all_reduce(std::span<std::int64_t> values, Reduce op) override {
    expect_whole();
    ForwardingExchange::all_reduce(values, op);
  }

 private:
  void expect_whole() const {
    const auto directory = CacheDirectory::open(local_, CacheDirectory::Access::existing);
    if (!directory) return;  // No rank has a log yet.
    const auto names = (*directory)->logs();
    ASSERT_TRUE(names);
    for (const std::string& name : *names) {
      const auto store = LogDirectory::open(*directory, name, LogDirectory::Use::look);
      if (!store) continue;  // Another rank's, gone meanwhile.
      const auto log = read_log(**store, ReadDepth::headers);
      if (!log || log->identity.rank != rank()) continue;
      EXPECT_EQ(log->incomplete_bytes(), 0);
    }
  }

  const std::string local_;
};

/// What all ranks write one behind the other, `length` bytes each, or in turn by 16 bytes; or one
/// of them at its place, the others nothing.
struct Write {
  Bytes first = 0;
  Bytes length = 0;
  bool in_turn = false;
  int only = -1;
  bool leaves_holes = false;  ///< Ranks of odd number write nothing either.

  TiledTree view(int rank) const {
    if (in_turn) return {StridedTree::contiguous(16), first + rank * 16, ranks * 16};
    return {StridedTree::contiguous(1), first + rank * length, 1};
  }
  Bytes length_of(int rank) const {
    if (leaves_holes && rank % 2 != 0) return 0;
    return only < 0 || only == rank ? length : 0;
  }
  Bytes end() const { return first + (only < 0 ? ranks : only + 1) * length; }
  /// The rank and the position in its data of the byte at `first` + i.
  std::pair<int, Bytes> source(Bytes i) const {
    if (!in_turn) return {static_cast<int>(i / length), i % length};
    return {static_cast<int>(i / 16 % ranks), i / 16 / ranks * 16 + i % 16};
  }
};

std::byte pattern(std::size_t call, int rank, Bytes position) {
  return static_cast<std::byte>(31 * call + 7 * static_cast<std::size_t>(rank) +
                                static_cast<std::size_t>(position) * 2654435761U / 1024 + 1);
}

class CachedDomains : public CacheTest {
 protected:
  /// Of all ranks together.
  struct Told {
    std::atomic<Bytes> message_bytes = 0;
    std::atomic<std::int64_t> exchanged = 0;
    std::atomic<std::int64_t> direct = 0;
    std::atomic<Bytes> absorbed = 0;
    std::atomic<std::int64_t> hole_reads = 0;
    std::atomic<Bytes> said_at_the_end = 0;  ///< In agreements on the last call.
  };

  CachedDomains() {
    hints_.aggregators = ranks;
    hints_.cache_sync_to_node = true;  // Else a log on a slow device is compared with the file.
  }

  /// The file has no stripes, and an aggregator's window is as long as one of them here.
  void without_stripes() {
    striped_ = false;
    hints_.buffer_size = stripe;
  }

  /// Writes `files` files, one after the other, by these calls; each is then as the model has it.
  void write(const std::vector<Write>& calls, int files, Told& told) {
    models_.clear();
    Content content;
    for (std::size_t k = 0; k < calls.size(); ++k) models_.push_back(after(content, calls[k], k));
    run_ranks(ranks, ranks_per_node_, [&](const std::shared_ptr<Exchange>& exchange) {
      const auto watched = std::make_shared<WatchedExchange>(exchange, *hints_.cache_path);
      for (int file = 0; file < files; ++file) write_file(watched, file, calls, told);
    });
    for (int file = 0; file < files; ++file) {
      path_ = (base_ / "data").string() + std::to_string(file);
      const Content found = file_content();
      EXPECT_EQ(found.size(), models_.back().size());
      EXPECT_TRUE(found == models_.back()) << "file " << file;
      std::filesystem::remove(path_);
    }
  }

  int ranks_per_node_ = 2;
  std::optional<std::size_t> given_up_before_;  ///< This call.
  bool read_back_ = false;  ///< After each call, by each rank what another one wrote.

 private:
  static const Content& after(Content& content, const Write& call, std::size_t number) {
    if (static_cast<Bytes>(content.size()) < call.end()) {
      content.resize(static_cast<std::size_t>(call.end()));
    }
    for (Bytes i = 0; i < call.end() - call.first; ++i) {
      const auto [rank, position] = call.source(i);
      if (call.length_of(rank) == 0) continue;
      content[static_cast<std::size_t>(call.first + i)] = pattern(number, rank, position);
    }
    return content;
  }

  void write_file(const std::shared_ptr<Exchange>& exchange, int number,
                  const std::vector<Write>& calls, Told& told) {
    const std::string path = (base_ / "data").string() + std::to_string(number);
    if (exchange->rank() == 0) std::ofstream(path).close();
    exchange->barrier();
    Counters counters;
    auto storage = open_posix_file(path, OpenMode::read_write, counters);
    ASSERT_TRUE(storage);
    if (striped_) storage = std::make_unique<StripedFile>(std::move(*storage));
    const auto file = CollectiveFile::open(exchange, std::move(*storage), hints_, counters);
    ASSERT_TRUE(file->holds_back());
    Bytes said = 0;
    for (std::size_t k = 0; k < calls.size(); ++k) {
      if (given_up_before_ == k) {
        ASSERT_TRUE(file->hold_nothing_back("a test"));
      }
      said = counters.metadata_bytes.load();
      const Bytes length = calls[k].length_of(exchange->rank());
      // In memory, each 8 bytes stand apart.
      Content data(static_cast<std::size_t>(2 * length + 16));
      for (Bytes i = 0; i < length; ++i) {
        data[static_cast<std::size_t>(i / 8 * 16 + i % 8)] = pattern(k, exchange->rank(), i);
      }
      const TiledTree memory{StridedTree::contiguous(8), buffer_at(data.data()).displacement, 16};
      const auto written = file->write_all({calls[k].view(exchange->rank()), 0, memory, length});
      ASSERT_TRUE(written) << to_string(written.error());
      if (read_back_) expect_content(*exchange, *file, models_[k]);
    }
    told.said_at_the_end += counters.metadata_bytes.load() - said;
    ASSERT_TRUE(file->close_together());
    told.message_bytes += counters.message_bytes.load();
    told.exchanged += counters.exchanged_calls.load();
    told.direct += counters.direct_calls.load();
    told.absorbed += counters.cache_absorbed.load();
    told.hole_reads += counters.hole_reads.load();
  }

  /// Each rank finds the eighth of the file behind its own.
  static void expect_content(Exchange& exchange, CollectiveFile& file, const Content& expected) {
    const auto length = static_cast<Bytes>(expected.size()) / ranks;
    const Bytes first = (exchange.rank() + 1) % ranks * length;
    Content found(static_cast<std::size_t>(length));
    exchange.barrier();
    const TiledTree view{StridedTree::contiguous(1), first, 1};
    const auto got = file.read({view, 0, buffer_at(found.data()), length});
    EXPECT_EQ(got.value_or(-1), length);
    EXPECT_TRUE(std::equal(found.begin(), found.end(), expected.begin() + first));
    exchange.barrier();
  }

  bool striped_ = true;
  std::vector<Content> models_;  ///< The file after each call.
};

TEST_F(CachedDomains, PartsBehindASmallHeaderStayWithTheirRanks) {
  std::vector<Write> calls = {{0, 16}, {128, 32}};
  for (int k = 0; k < 6; ++k) calls.push_back({512 + k * ranks * 2 * stripe, 2 * stripe});
  constexpr Bytes payload = 6 * ranks * 2 * stripe;
  Told first;
  write(calls, 1, first);
  EXPECT_EQ(first.direct, 0);
  EXPECT_LT(first.message_bytes, payload / 8);
  Told three;
  write(calls, 3, three);
  EXPECT_LT(three.message_bytes, 3 * payload / 8);
}

TEST_F(CachedDomains, PartsOfWholeStripesAreNotEvenExchanged) {
  Told told;
  write({{0, 2 * stripe}, {ranks * 2 * stripe, 2 * stripe}}, 1, told);
  EXPECT_EQ(told.exchanged, 0);
  EXPECT_EQ(told.direct, 2 * ranks);
  EXPECT_EQ(told.message_bytes, 0);
}

TEST_F(CachedDomains, AFileOfAnotherPatternGetsDomainsOfItsOwn) {
  Told told;
  write({{512, 2 * stripe}, {512, 4 * stripe, true}, {100, 3 * stripe}}, 2, told);
  EXPECT_GT(told.message_bytes, 0);
}

/// The file itself has nothing until it is closed.
TEST_F(CachedDomains, HolesAreFilledFromLogs) {
  hints_.cache_flush = CacheFlush::onclose;
  Told told;
  const Write whole{.length = 4 * stripe, .in_turn = true};
  Write with_holes = whole;
  with_holes.leaves_holes = true;
  write({whole, with_holes}, 1, told);
  EXPECT_GT(told.hole_reads, 0);
}

/// As checkpoints of many small variables: each call is of all ranks, behind what one of them
/// writes about it, and parts begin and end anywhere.
TEST_F(CachedDomains, WhatMeetsInGranulesIsAllInLogs) {
  constexpr Bytes length = stripe / 2;
  std::vector<Write> calls;
  Bytes total = 0;
  for (Bytes at = 100, k = 0; k < 24; ++k) {
    calls.push_back({.first = at, .length = 40, .only = static_cast<int>(k % 3)});
    calls.push_back({.first = at + 3 * 40, .length = length});
    at = calls.back().end();
    total += 40 + ranks * length;
  }
  without_stripes();
  for (const int per_node : {ranks, 2, 1}) {
    ranks_per_node_ = per_node;
    Told told;
    write(calls, 2, told);
    EXPECT_EQ(told.absorbed, 2 * total) << per_node << " ranks a node";
  }
}

/// Of long parts, what is exchanged is where they meet.
TEST_F(CachedDomains, LongPartsMeetAtAggregators) {
  constexpr Bytes length = 12 * stripe + 40;
  std::vector<Write> calls;
  for (Bytes k = 0; k < 8; ++k) calls.push_back({100 + k * ranks * length, length});
  without_stripes();
  for (const int per_node : {ranks, 1}) {
    ranks_per_node_ = per_node;
    Told told;
    write(calls, 1, told);
    EXPECT_EQ(told.absorbed, 8 * ranks * length);
    EXPECT_EQ(told.exchanged, 8 * ranks);
    EXPECT_EQ(told.direct, 0);
    EXPECT_LE(told.message_bytes, 8 * (ranks + 1) * stripe);
  }
}

/// It says nothing of what comes.
TEST_F(CachedDomains, AnEmptyCallIsNoneOfWholeGranules) {
  constexpr Bytes length = stripe / 4;
  std::vector<Write> calls{{}};
  for (Bytes k = 0; k < 24; ++k) calls.push_back({100 + k * ranks * length, length});
  without_stripes();
  Told told;
  write(calls, 1, told);
  EXPECT_EQ(told.absorbed, 24 * ranks * length);
}

TEST_F(CachedDomains, WhatIsWholeGranulesIsNotExchanged) {
  without_stripes();
  Told told;
  write({{0, 100}, {ranks * 2 * stripe, 2 * stripe}, {ranks * 4 * stripe, 3 * stripe}}, 1, told);
  EXPECT_EQ(told.exchanged, ranks);
  EXPECT_EQ(told.direct, 2 * ranks);
  EXPECT_EQ(told.absorbed, ranks * (5 * stripe + 100));
}

TEST_F(CachedDomains, CallsOfWholeGranulesNeedNoAgreementEach) {
  without_stripes();
  std::vector<Write> calls;
  for (Bytes k = 0; k < 6; ++k) calls.push_back({k * ranks * stripe, stripe});
  Told told;
  write(calls, 1, told);
  EXPECT_EQ(told.absorbed, 6 * ranks * stripe);
  EXPECT_EQ(told.said_at_the_end, 0);
}

TEST_F(CachedDomains, OfACacheThatWasGivenUpNothingIsExchanged) {
  without_stripes();
  std::vector<Write> calls;
  for (Bytes k = 0; k < 6; ++k) calls.push_back({100 + k * ranks * 1024, 1024});
  given_up_before_ = 2;
  Told told;
  write(calls, 1, told);
  EXPECT_EQ(told.absorbed, 2 * ranks * 1024);
  EXPECT_EQ(told.exchanged, 3 * ranks) << "in the third call, all learn of it";
  EXPECT_EQ(told.said_at_the_end, 0) << "as without a cache";
}

TEST_F(CachedDomains, LeaveWhatWasWrittenLast) {
  std::mt19937 random(1);
  const auto draw = [&random](Bytes low, Bytes high) {
    return std::uniform_int_distribution<Bytes>(low, high)(random);
  };
  for (int sequence = 0; sequence < 20; ++sequence) {
    if (sequence == 12) without_stripes();
    read_back_ = sequence % 4 == 3;
    std::vector<Write> calls(static_cast<std::size_t>(draw(1, 6)));
    const Bytes longest = sequence < 12 ? 1024 : 4096;
    for (Write& call : calls) call = {draw(0, 20'000), 16 * draw(1, longest), draw(0, 1) == 1};
    hints_.aggregators = 1 << draw(1, 3);
    SCOPED_TRACE("sequence " + std::to_string(sequence));
    Told told;
    write(calls, 2, told);
  }
}

}  // namespace
}  // namespace forebay
