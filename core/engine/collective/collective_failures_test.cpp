// Goal: a storage call that fails, whichever, is an error where MPI's rules want it, on every rank
// of a collective call, and hangs nobody; a transfer in parts is none. Method: ranks are threads,
// storage is memory behind FaultyFile; each call fails in turn.

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <functional>

#include "core/engine/collective/collective_file.hpp"
#include "core/engine/collective/collective_rig.hpp"
#include "core/engine/collective/thread_exchange.hpp"
#include "core/storage/faulty_file.hpp"
#include "core/storage/memory_file.hpp"

namespace forebay {
namespace {

/// A file of four ranks whose pieces are interleaved, over a storage of which `faults` happen.
struct FaultyWorld {
  static constexpr int ranks = 4;
  static constexpr Bytes bytes = 20'000;  ///< Of each rank, in pieces of 20.

  explicit FaultyWorld(Fault fault, int on_node = ranks)
      : plan(std::make_shared<FaultPlan>(std::vector<Fault>{fault})), ranks_per_node(on_node) {
    Counters counters;
    const std::vector<std::byte> zeros(ranks * bytes);
    EXPECT_TRUE(open_memory_file(inode, counters)->write_at(zeros, 0));
  }

  using Body = std::function<Status(CollectiveFile&, const Access&)>;

  /// Runs `body` on each rank. The outcomes by rank.
  std::vector<Status> run(const Hints& hints, const Body& body) {
    std::vector<Status> outcomes(ranks);
    run_ranks(ranks, ranks_per_node, [&](const std::shared_ptr<Exchange>& exchange) {
      Counters counters;
      const auto file = CollectiveFile::open(
          exchange, make_faulty(open_memory_file(inode, counters), plan), hints, counters);
      const Call call = interleaved(ranks, 20, 1'000);
      const auto i = static_cast<std::size_t>(exchange->rank());
      std::vector<std::byte> buffer(bytes);
      outcomes[i] = body(*file, {call.views[i], 0, buffer_at(buffer.data()), bytes});
    });
    return outcomes;
  }

  std::shared_ptr<MemoryInode> inode =
      std::make_shared<MemoryInode>(StripeLayout{.stripe_size = 4096, .servers = 4});
  std::shared_ptr<FaultPlan> plan;
  int ranks_per_node;
};

auto failures_of(const std::vector<Status>& outcomes, ErrorKind kind) {
  return std::ranges::count_if(
      outcomes, [kind](const Status& outcome) { return !outcome && outcome.error().kind == kind; });
}

FaultyWorld::Body moving(StorageCall kind, bool together) {
  return [=](CollectiveFile& file, const Access& access) -> Status {
    const bool writing = kind == StorageCall::write;
    const auto moved = together ? (writing ? file.write_all(access) : file.read_all(access))
                                : (writing ? file.write(access) : file.read(access));
    if (!moved) return tl::unexpected(moved.error());
    EXPECT_EQ(*moved, access.length);
    return {};
  };
}

/// Every storage call of a collective write and read fails in turn, on one rank.
TEST(CollectiveFile, AnyFailingStorageCallIsAnErrorOnEveryRank) {
  for (const Toggle exchanged : {Toggle::enable, Toggle::disable}) {
    for (const StorageCall kind : {StorageCall::write, StorageCall::read}) {
      for (const int ranks_per_node : {1, 4}) {
        std::int64_t calls = 1;
        for (std::int64_t nth = 0; nth < calls; nth += exchanged == Toggle::enable ? 1 : 97) {
          FaultyWorld world({.call = kind, .nth = nth, .os_errno = ENOSPC, .after_bytes = 3},
                            ranks_per_node);
          const auto outcomes = world.run(going(exchanged), moving(kind, true));
          if (nth == 0) calls = world.plan->calls(kind);
          EXPECT_EQ(failures_of(outcomes, ErrorKind::no_space), 4)
              << "call " << nth << " of " << calls;
        }
        EXPECT_GT(calls, 1);
      }
    }
  }
}

/// What an independent call meets concerns its rank alone.
TEST(CollectiveFile, AFailingIndependentCallIsAnErrorOnItsRank) {
  for (const StorageCall kind : {StorageCall::write, StorageCall::read}) {
    for (const std::int64_t nth : {0, 1, 3}) {
      FaultyWorld world({.call = kind, .nth = nth, .os_errno = EIO});
      const auto outcomes = world.run({}, moving(kind, false));
      EXPECT_EQ(failures_of(outcomes, ErrorKind::io), 1) << "call " << nth;
      EXPECT_EQ(std::ranges::count_if(outcomes, [](const Status& s) { return s.has_value(); }), 3);
    }
  }
}

/// Transfers that take two calls of the system are none of the program's business.
TEST(CollectiveFile, ShortTransfersAreResumed) {
  for (const StorageCall kind : {StorageCall::write, StorageCall::read}) {
    for (const Toggle exchanged : {Toggle::enable, Toggle::disable}) {
      for (const std::int64_t nth : {0, 1, 2}) {
        FaultyWorld world({.call = kind, .nth = nth, .os_errno = 0, .after_bytes = 7});
        for (const Status& outcome : world.run(going(exchanged), moving(kind, true))) {
          EXPECT_TRUE(outcome);
        }
        EXPECT_EQ(world.plan->fired(), 1);
      }
    }
  }
}

TEST(CollectiveFile, AFailingSyncIsAnErrorOnEveryRank) {
  for (std::int64_t nth = 0; nth < FaultyWorld::ranks; ++nth) {
    FaultyWorld world({.call = StorageCall::sync, .nth = nth, .os_errno = EDQUOT});
    const auto outcomes =
        world.run({}, [](CollectiveFile& file, const Access&) { return file.sync(); });
    EXPECT_EQ(failures_of(outcomes, ErrorKind::quota), 4) << "call " << nth;
  }
}

/// In atomic mode a rank that cannot lock what it writes must not write it.
TEST(CollectiveFile, AFailingLockIsAnErrorOnEveryRank) {
  FaultyWorld world({.call = StorageCall::lock, .nth = 1, .os_errno = ENOLCK});
  const auto outcomes = world.run({}, [](CollectiveFile& file, const Access& access) {
    file.set_atomic(true);
    return moving(StorageCall::write, true)(file, access);
  });
  EXPECT_EQ(failures_of(outcomes, ErrorKind::io), 4);
}

/// Where ranks need no word of each other in a collective write, the others hear of a failure when
/// they next have to talk: once.
TEST(CollectiveFile, AnErrorInACallWithoutAgreementIsToldLater) {
  auto inode = std::make_shared<MemoryInode>();
  auto plan = std::make_shared<FaultPlan>(
      std::vector<Fault>{{.call = StorageCall::write, .nth = 2, .os_errno = ENOSPC}});
  run_ranks(2, 2, [&](const std::shared_ptr<Exchange>& exchange) {
    Counters counters;
    const auto file = CollectiveFile::open(
        exchange, make_faulty(open_memory_file(inode, counters), plan), {}, counters);
    const TiledTree bytes{StridedTree::contiguous(1), 0, 1};
    std::vector<std::byte> buffer(100);
    const Bytes mine = exchange->rank() * 1'000;
    ASSERT_TRUE(file->write_all({bytes, mine, buffer_at(buffer.data()), 100}));
    exchange->barrier();
    // The third write of all: by rank 1, which calls alone.
    if (exchange->rank() == 1) {
      const auto failed = file->write_all({bytes, mine + 100, buffer_at(buffer.data()), 100});
      ASSERT_FALSE(failed);
      EXPECT_EQ(file->untold_error().kind, ErrorKind::no_space);
    }
    exchange->barrier();
    if (exchange->rank() == 0) {
      ASSERT_TRUE(file->write_all({bytes, mine + 100, buffer_at(buffer.data()), 100}));
    }
    const Status told = file->sync();
    ASSERT_FALSE(told);
    EXPECT_EQ(told.error().kind, ErrorKind::no_space);
    EXPECT_EQ(file->untold_error().kind, ErrorKind::none);
    EXPECT_TRUE(file->sync());
  });
}

}  // namespace
}  // namespace forebay
