// Goal: writes of many small pieces are sieved where nobody can write into the gaps meanwhile
// without a lock, and whatever ranks write at the same time into disjoint bytes, by whatever calls
// and handles, none of it is lost.
// Method: ranks are threads, storage is memory whose reads let the other threads go on, so that
// what is written between reading a span and writing it back would be lost. Each byte of the file
// has one writer and one value, so the outcome is the same in every order.

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <atomic>
#include <cerrno>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "core/engine/collective/collective_file.hpp"
#include "core/engine/collective/thread_exchange.hpp"
#include "core/storage/faulty_file.hpp"
#include "core/storage/forwarding_file.hpp"
#include "core/storage/memory_file.hpp"

namespace forebay {
namespace {

/// A file whose reads give the processor away once they have what they read. Fault model: none.
class PausingFile final : public ForwardingFile {
 public:
  explicit PausingFile(std::unique_ptr<StorageFile> inner) : ForwardingFile(std::move(inner)) {}

  Result<Bytes> read_pieces(std::span<const iovec> pieces, Bytes offset) override {
    auto read = ForwardingFile::read_pieces(pieces, offset);
    std::this_thread::yield();
    return read;
  }
};

using Inode = std::shared_ptr<MemoryInode>;

/// The one value of the byte at `offset`; never 0, which unwritten bytes have.
std::byte value_at(Bytes offset) {
  const auto x = static_cast<std::uint64_t>(offset) * 0x9E3779B97F4A7C15U;
  return static_cast<std::byte>((x >> 56) | 1);
}

const TiledTree whole_file{StridedTree::contiguous(1), 0, 1};

/// `piece` bytes at `first` and in every `stride` from there.
TiledTree every(Bytes stride, Bytes first, Bytes piece) {
  return {StridedTree::contiguous(piece), first, stride};
}

/// One rank's handle.
class Handle {
 public:
  Handle(const std::shared_ptr<Exchange>& exchange, const Inode& inode, Writers writers,
         const Hints& hints = {})
      : Handle(exchange, std::make_unique<PausingFile>(open_memory_file(inode, counters_)), writers,
               hints) {}
  Handle(const std::shared_ptr<Exchange>& exchange, std::unique_ptr<StorageFile> storage,
         Writers writers, const Hints& hints = {})
      : file_(CollectiveFile::open(exchange, std::move(storage), hints, counters_,
                                   steady_nanoseconds(), writers)) {}

  /// Collective.
  void set_view(const TiledTree& view) {
    view_ = view;
    std::int64_t vote = file_->vote_on_sieving(view);
    file_->exchange().all_reduce({&vote, 1}, Reduce::max);
    file_->view_changed(vote);
  }

  /// Each byte gets its value. Data positions of the view.
  void write(Bytes start, Bytes length) { move(start, length, false); }
  void write_all(Bytes start, Bytes length) { move(start, length, true); }

  CollectiveFile& file() { return *file_; }
  std::int64_t sieved() const { return counters_.hole_reads.load(); }
  std::int64_t writes() const { return counters_.storage_writes.load(); }
  std::int64_t exchanged() const { return counters_.exchanged_calls.load(); }

 private:
  void move(Bytes start, Bytes length, bool collective) {
    std::vector<std::byte> data;
    TreeCursor walk(view_);
    walk.seek_data(start);
    for (Run run; walk.next(start + length, run);) {
      for (std::int64_t i = 0; i < run.count; ++i) {
        for (Bytes b = 0; b < run.block; ++b) {
          data.push_back(value_at(run.offset + i * run.stride + b));
        }
      }
    }
    const TiledTree memory{StridedTree::contiguous(1), reinterpret_cast<std::intptr_t>(data.data()),
                           1};
    const Access access{view_, start, memory, length};
    const auto done = collective ? file_->write_all(access) : file_->write(access);
    ASSERT_TRUE(done) << to_string(done.error());
    EXPECT_EQ(*done, length);
  }

  Counters counters_;
  TiledTree view_ = whole_file;
  std::unique_ptr<CollectiveFile> file_;
};

/// All bytes below `end` have their values, and there are no more.
void expect_all_written(const MemoryInode& inode, Bytes end) {
  const auto content = inode.content();
  ASSERT_EQ(static_cast<Bytes>(content.size()), end);
  for (Bytes at = 0; at < end; ++at) {
    ASSERT_EQ(content[static_cast<std::size_t>(at)], value_at(at)) << "lost the byte at " << at;
  }
}

TEST(SievedWrites, RanksWhosePiecesInterleaveWriteSpans) {
  constexpr Bytes pieces = 40'000;
  const auto inode = std::make_shared<MemoryInode>();
  run_ranks(3, 3, [&](const std::shared_ptr<Exchange>& exchange) {
    Handle handle(exchange, inode, Writers::ranks);
    handle.set_view(every(24, 8 * exchange->rank(), 8));
    for (Bytes call = 0; call < 8; ++call) handle.write(call * pieces, pieces);
    EXPECT_GE(handle.sieved(), 8);
    EXPECT_LE(handle.writes(), 20);
  });
  expect_all_written(*inode, 3 * 8 * pieces);
}

TEST(SievedWrites, WritersOfSinglePiecesBesideThemLoseNothing) {
  constexpr Bytes tiles = 1'000;
  const auto inode = std::make_shared<MemoryInode>();
  run_ranks(3, 3, [&](const std::shared_ptr<Exchange>& exchange) {
    Handle handle(exchange, inode, Writers::ranks);
    const bool sieves = exchange->rank() < 2;
    handle.set_view(sieves ? every(24, 8 * exchange->rank(), 8) : whole_file);
    if (sieves) {
      for (Bytes call = 0; call < tiles; call += 100) handle.write(call * 8, 800);
      EXPECT_GE(handle.sieved(), 10);
    } else {
      for (Bytes tile = 0; tile < tiles; ++tile) handle.write(24 * tile + 16, 8);
      EXPECT_EQ(handle.sieved(), 0);
    }
  });
  expect_all_written(*inode, 24 * tiles);
}

TEST(SievedWrites, CollectiveCallsBetweenThemLoseNothing) {
  constexpr Bytes pieces = 8'000;
  const auto inode = std::make_shared<MemoryInode>();
  run_ranks(4, 2, [&](const std::shared_ptr<Exchange>& exchange) {
    Handle handle(exchange, inode, Writers::ranks);
    handle.set_view(every(32, 8 * exchange->rank(), 8));
    // Each call's bytes lie on both sides of those of the calls before and after it.
    for (Bytes call = 0; call < 10; ++call) {
      if (call % 2 == exchange->rank() % 2) handle.write(call * pieces, pieces / 2);
      handle.write_all(call * pieces + pieces / 2, pieces / 2);
      if (call % 2 != exchange->rank() % 2) handle.write(call * pieces, pieces / 2);
    }
    EXPECT_EQ(handle.exchanged(), 10);
    EXPECT_GE(handle.sieved(), 5);
  });
  expect_all_written(*inode, 4 * 8 * 10 * pieces / 8);
}

/// Two of three ranks write through a second handle, together, while the third one sieves.
TEST(SievedWrites, AnotherHandleOfSomeRanksLosesNothing) {
  constexpr Bytes tiles = 1'000;
  for (const bool collective : {true, false}) {
    const auto inode = std::make_shared<MemoryInode>();
    const auto pair = make_thread_exchanges(2, 2);
    run_ranks(3, 3, [&](const std::shared_ptr<Exchange>& exchange) {
      const int r = exchange->rank();
      std::optional<Handle> second;
      if (r < 2) second.emplace(pair[static_cast<std::size_t>(r)], inode, Writers::others);
      Handle first(exchange, inode, Writers::ranks);
      first.set_view(every(24, 8 * r, 8));
      if (r == 2) {
        for (Bytes call = 0; call < tiles; call += 100) first.write(call * 8, 800);
        EXPECT_GE(first.sieved(), 10);
        return;
      }
      second->set_view(every(24, 8 * r, 8));
      for (Bytes call = 0; call < tiles; call += 100) {
        collective ? second->write_all(call * 8, 800) : second->write(call * 8, 800);
      }
      EXPECT_EQ(second->exchanged(), 0) << "aggregators hold no locks";
      EXPECT_EQ(second->sieved(), 0);
    });
    expect_all_written(*inode, 24 * tiles);
  }
}

TEST(SievedWrites, AFileGrowsToTheLastPieceAndNoFurther) {
  const auto inode = std::make_shared<MemoryInode>();
  run_ranks(1, 1, [&](const std::shared_ptr<Exchange>& exchange) {
    Handle handle(exchange, inode, Writers::ranks);
    handle.set_view(every(40, 0, 8));
    handle.write(0, 8 * 50 - 3);
    EXPECT_EQ(handle.sieved(), 1);
  });
  const auto content = inode->content();
  ASSERT_EQ(content.size(), 49U * 40 + 5);
  for (std::size_t at = 0; at < content.size(); ++at) {
    const auto expected = at % 40 < 8 ? value_at(static_cast<Bytes>(at)) : std::byte{0};
    ASSERT_EQ(content[at], expected) << at;
  }
}

TEST(SievedWrites, AtomicCallsAreSievedUnderTheirOwnLock) {
  const auto inode = std::make_shared<MemoryInode>();
  run_ranks(2, 2, [&](const std::shared_ptr<Exchange>& exchange) {
    Handle handle(exchange, inode, Writers::ranks);
    handle.file().set_atomic(true);
    handle.set_view(every(16, 8 * exchange->rank(), 8));
    for (Bytes call = 0; call < 10; ++call) handle.write(call * 800, 800);
    EXPECT_EQ(handle.sieved(), 10);
  });
  expect_all_written(*inode, 16'000);
}

/// Writes 100 pieces through a view with gaps, one rank beside another that does the same; how many
/// spans the two sieved.
std::int64_t spans_sieved(Writers writers, const Hints& hints, Bytes piece = 8) {
  const auto inode = std::make_shared<MemoryInode>();
  std::atomic<std::int64_t> sieved = 0;
  run_ranks(2, 2, [&](const std::shared_ptr<Exchange>& exchange) {
    Handle handle(exchange, inode, writers, hints);
    handle.set_view(every(2 * piece, piece * exchange->rank(), piece));
    handle.write(0, 100 * piece);
    sieved += handle.sieved();
  });
  expect_all_written(*inode, 200 * piece);
  return sieved;
}

TEST(SievedWrites, HappenWhereTheyPayAndNobodyElseCanWrite) {
  Hints enabled;
  enabled.sieve_write = Toggle::enable;
  Hints disabled;
  disabled.sieve_write = Toggle::disable;
  EXPECT_EQ(spans_sieved(Writers::ranks, {}), 2);
  EXPECT_EQ(spans_sieved(Writers::ranks, disabled), 0);
  EXPECT_EQ(spans_sieved(Writers::others, {}), 0);
  EXPECT_EQ(spans_sieved(Writers::others, enabled), 2) << "the user's word";
  EXPECT_EQ(spans_sieved(Writers::ranks, {}, 4096), 0) << "a call for each is cheaper";
  EXPECT_GT(spans_sieved(Writers::ranks, enabled, 4096), 0);
}

TEST(SievedWrites, AHintThatComesLaterCounts) {
  const auto inode = std::make_shared<MemoryInode>();
  run_ranks(2, 2, [&](const std::shared_ptr<Exchange>& exchange) {
    Handle handle(exchange, inode, Writers::ranks);
    handle.set_view(every(16, 8 * exchange->rank(), 8));
    Hints hints;
    hints.sieve_write = Toggle::disable;
    handle.file().set_hints(hints);
    handle.write(0, 800);
    EXPECT_EQ(handle.sieved(), 0);
    hints.sieve_write = Toggle::automatic;
    handle.file().set_hints(hints);
    handle.write(800, 800);
    EXPECT_EQ(handle.sieved(), 1);
  });
  expect_all_written(*inode, 3'200);
}

TEST(SievedWrites, DoNotHappenWhereLocksDoNotWork) {
  for (const Toggle toggle : {Toggle::automatic, Toggle::enable}) {
    const auto inode = std::make_shared<MemoryInode>();
    run_ranks(2, 2, [&](const std::shared_ptr<Exchange>& exchange) {
      // On one rank alone; the other must not sieve either.
      std::vector<Fault> faults;
      if (exchange->rank() == 1) {
        faults.push_back({.call = StorageCall::lock, .os_errno = ENOLCK, .lasting = true});
      }
      Counters counters;
      Hints hints;
      hints.sieve_write = toggle;
      Handle handle(exchange,
                    make_faulty(open_memory_file(inode, counters),
                                std::make_shared<FaultPlan>(std::move(faults))),
                    Writers::ranks, hints);
      handle.set_view(every(16, 8 * exchange->rank(), 8));
      handle.write(0, 800);
      EXPECT_EQ(handle.sieved(), 0);
    });
    expect_all_written(*inode, 1'600);
  }
}

/// Any calls at the same time: slots of a tile are dealt out to the ranks, some ranks see only
/// theirs through a view and others put each slot by itself, and calls are collective or not.
RC_GTEST_PROP(SievedWritesProperty, NoByteIsLost, ()) {
  const int ranks = *rc::gen::inRange(2, 5);
  const auto slots = *rc::gen::inRange<std::size_t>(2, 10);
  const auto slot = *rc::gen::element<Bytes>(1, 8, 24, 600);
  const auto owner = *rc::gen::container<std::vector<int>>(slots, rc::gen::inRange<int>(0, ranks));
  const auto through_view = *rc::gen::container<std::vector<bool>>(
      static_cast<std::size_t>(ranks), rc::gen::weightedElement<bool>({{3, true}, {1, false}}));
  const auto collective = *rc::gen::container<std::vector<bool>>(6, rc::gen::arbitrary<bool>());
  const auto tiles_a_call = *rc::gen::element<Bytes>(3, 40, 300);
  Hints hints;
  hints.independent_write_buffer = *rc::gen::element<Bytes>(1000, 4096, 512 * KiB);
  hints.sieve_write =
      *rc::gen::weightedElement<Toggle>({{3, Toggle::automatic}, {1, Toggle::enable}});
  const Bytes extent = static_cast<Bytes>(slots) * slot;

  const auto inode = std::make_shared<MemoryInode>();
  run_ranks(ranks, *rc::gen::inRange(1, ranks + 1), [&](const std::shared_ptr<Exchange>& exchange) {
    const int me = exchange->rank();
    std::vector<Bytes> mine;
    for (std::size_t s = 0; s < slots; ++s) {
      if (owner[s] == me) mine.push_back(static_cast<Bytes>(s) * slot);
    }
    const bool sees_own = through_view[static_cast<std::size_t>(me)] && !mine.empty();
    Handle handle(exchange, inode, Writers::ranks, hints);
    handle.set_view(
        sees_own ? TiledTree{StridedTree::indexed(mine, StridedTree::contiguous(slot)), 0, extent}
                 : whole_file);
    const Bytes a_tile = static_cast<Bytes>(mine.size()) * slot;
    for (std::size_t call = 0; call < collective.size(); ++call) {
      const Bytes first = static_cast<Bytes>(call) * tiles_a_call;
      if (sees_own) {
        const Bytes length = tiles_a_call * a_tile;
        collective[call] ? handle.write_all(first * a_tile, length)
                         : handle.write(first * a_tile, length);
        continue;
      }
      for (Bytes tile = first; tile < first + tiles_a_call; ++tile) {
        for (const Bytes offset : mine) handle.write(tile * extent + offset, slot);
      }
      if (collective[call]) handle.write_all(0, 0);
    }
  });
  expect_all_written(*inode, extent * tiles_a_call * static_cast<Bytes>(collective.size()));
  RC_ASSERT(!testing::Test::HasFailure());
}

}  // namespace
}  // namespace forebay
