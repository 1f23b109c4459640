// Goal: with a cache, what ranks write one behind the other does not travel, and whatever they
// write, call after call and file after file, the file holds it at the end. Method: ranks are
// threads of several nodes, each writes to a log of its own, which is looked at whenever ranks
// agree on something; bytes of messages are counted, and the file is compared with a model that
// takes the calls in order.

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <memory>
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
constexpr int ranks_per_node = 2;
constexpr Bytes stripe = 4 * KiB;

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

/// What all ranks write one behind the other, `length` bytes each, or in turn by 16 bytes.
struct Write {
  Bytes first = 0;
  Bytes length = 0;
  bool in_turn = false;

  TiledTree view(int rank) const {
    if (in_turn) return {StridedTree::contiguous(16), first + rank * 16, ranks * 16};
    return {StridedTree::contiguous(1), first + rank * length, 1};
  }
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
  };

  CachedDomains() { hints_.aggregators = ranks; }

  /// Writes `files` files, one after the other, by these calls; each is then as the model has it.
  void write(const std::vector<Write>& calls, int files, Told& told) {
    const Content expected = model(calls);
    run_ranks(ranks, ranks_per_node, [&](const std::shared_ptr<Exchange>& exchange) {
      const auto watched = std::make_shared<WatchedExchange>(exchange, *hints_.cache_path);
      for (int file = 0; file < files; ++file) write_file(watched, file, calls, told);
    });
    for (int file = 0; file < files; ++file) {
      path_ = (base_ / "data").string() + std::to_string(file);
      const Content found = file_content();
      EXPECT_EQ(found.size(), expected.size());
      EXPECT_TRUE(found == expected) << "file " << file;
      std::filesystem::remove(path_);
    }
  }

 private:
  static Content model(const std::vector<Write>& calls) {
    Content content;
    for (std::size_t k = 0; k < calls.size(); ++k) {
      const Bytes end = calls[k].first + ranks * calls[k].length;
      if (static_cast<Bytes>(content.size()) < end) content.resize(static_cast<std::size_t>(end));
      for (Bytes i = 0; i < ranks * calls[k].length; ++i) {
        const auto [rank, position] = calls[k].source(i);
        content[static_cast<std::size_t>(calls[k].first + i)] = pattern(k, rank, position);
      }
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
    const auto file = CollectiveFile::open(
        exchange, std::make_unique<StripedFile>(std::move(*storage)), hints_, counters);
    ASSERT_TRUE(file->holds_back());
    for (std::size_t k = 0; k < calls.size(); ++k) {
      const Bytes length = calls[k].length;
      Content data(static_cast<std::size_t>(length));
      for (Bytes i = 0; i < length; ++i) {
        data[static_cast<std::size_t>(i)] = pattern(k, exchange->rank(), i);
      }
      const auto written =
          file->write_all({calls[k].view(exchange->rank()), 0, buffer_at(data.data()), length});
      ASSERT_TRUE(written) << to_string(written.error());
    }
    ASSERT_TRUE(file->close_together());
    told.message_bytes += counters.message_bytes.load();
    told.exchanged += counters.exchanged_calls.load();
    told.direct += counters.direct_calls.load();
  }
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

TEST_F(CachedDomains, LeaveWhatWasWrittenLast) {
  std::mt19937 random(1);
  const auto draw = [&random](Bytes low, Bytes high) {
    return std::uniform_int_distribution<Bytes>(low, high)(random);
  };
  for (int sequence = 0; sequence < 12; ++sequence) {
    std::vector<Write> calls(static_cast<std::size_t>(draw(1, 6)));
    for (Write& call : calls) call = {draw(0, 20'000), 16 * draw(1, 1024), draw(0, 1) == 1};
    hints_.aggregators = 1 << draw(1, 3);
    SCOPED_TRACE("sequence " + std::to_string(sequence));
    Told told;
    write(calls, 2, told);
  }
}

}  // namespace
}  // namespace forebay
