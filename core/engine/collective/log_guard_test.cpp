// Goal: what the logs of ranks got is protected on other nodes when a step returns, whichever node
// is lost then; a rank whose storage fails fails the step on all of them, and none waits for ever.
// Method: ranks are threads; random histories, unequal logs, ranks without a log; each node lost in
// turn, and its logs rebuilt from the others and compared.

#include "core/engine/collective/log_guard.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <mutex>

#include "core/engine/cache/log_contents.hpp"
#include "core/engine/cache/memory_log_store.hpp"
#include "core/engine/collective/thread_exchange.hpp"
#include "core/engine/redundancy/parity_reader.hpp"
#include "core/engine/redundancy/rebuild.hpp"
#include "core/model/noise.hpp"

namespace forebay {
namespace {

using Content = std::vector<std::byte>;

std::unique_ptr<ResourceHolder> room() {
  return *ResourceHolder::join(std::make_shared<Resource>("cache.local", GiB));
}

/// What one rank keeps on its node, and what it has written.
struct Rank {
  std::shared_ptr<MemoryLog> log = std::make_shared<MemoryLog>();
  std::unique_ptr<LogWriter> writer;
  std::vector<std::shared_ptr<MemoryLog>> parity;
  std::uint64_t written_until = 0;
  std::uint64_t flushed = 0;
  std::shared_ptr<FaultPlan> parity_plan;
  std::shared_ptr<FaultPlan> log_plan;
};

struct World {
  int nodes = 4;
  int ranks_per_node = 1;
  int members = 3;
  int parities = 1;
  std::vector<Rank> ranks =
      std::vector<Rank>(static_cast<std::size_t>(nodes) * static_cast<std::size_t>(ranks_per_node));

  void run(const std::function<void(Rank&, LogGuard&, Exchange&)>& body) {
    run_ranks(
        nodes * ranks_per_node, ranks_per_node, [&](const std::shared_ptr<Exchange>& exchange) {
          Rank& mine = ranks[static_cast<std::size_t>(exchange->rank())];
          LogGuard guard(
              *exchange, protection_groups(exchange->nodes().ranks_of_node, members, parities),
              "group",
              [&](const std::string& group, int piece) -> Result<std::unique_ptr<ParityWriter>> {
                LogIdentity identity;
                identity.log = group + "-" + std::to_string(piece);
                identity.purpose = LogPurpose::protection;
                mine.parity.push_back(std::make_shared<MemoryLog>());
                return std::make_unique<ParityWriter>(mine.parity.back()->open(mine.parity_plan),
                                                      identity, LogSettings{256 * KiB, 16 * KiB},
                                                      room());
              });
          body(mine, guard, *exchange);
        });
  }

  static void write(Rank& mine, int rank, Bytes offset, const Content& bytes) {
    if (mine.writer == nullptr) {
      LogIdentity identity;
      identity.log = "log-" + std::to_string(rank);
      identity.rank = rank;
      mine.writer = std::make_unique<LogWriter>(mine.log->open(mine.log_plan), identity,
                                                LogSettings{256 * KiB, 16 * KiB, Toggle::disable},
                                                room(), [](const LogRecord&, const LogPlace&) {});
    }
    const iovec piece{const_cast<std::byte*>(bytes.data()), bytes.size()};
    ASSERT_TRUE(mine.writer->append({&piece, 1}, offset, 1).status);
    mine.written_until = *mine.writer->commit(1);
  }

  /// Without these nodes the logs of their ranks come back as they were.
  void expect_back_without(const std::vector<int>& lost_nodes) {
    std::vector<std::unique_ptr<LogStore>> stores;
    std::vector<ParityContents> parity;
    StoresByName left;
    StoresByName lost;
    std::map<std::string, MemoryLog> rebuilt;
    for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
      const int node = static_cast<int>(rank) / ranks_per_node;
      const std::string name = "log-" + std::to_string(rank);
      const Rank& at = ranks[rank];
      if (std::ranges::find(lost_nodes, node) != lost_nodes.end()) {
        if (at.writer != nullptr) lost[name] = keep(stores, rebuilt[name].open());
        continue;
      }
      if (at.writer != nullptr) left[name] = keep(stores, at.log->open());
      for (const auto& log : at.parity) {
        auto contents = read_parity_log(*keep(stores, log->open()), ReadDepth::payloads);
        if (contents) parity.push_back(std::move(*contents));
      }
    }
    const auto report = rebuild(parity, left, lost);
    ASSERT_TRUE(report);
    EXPECT_TRUE(report->missing.empty()) << report->missing.front();
    for (const auto& [name, store] : lost) {
      const Rank& at = ranks[std::stoul(name.substr(4))];
      if (at.flushed >= at.written_until) continue;
      const auto contents = read_log(*store, ReadDepth::payloads);
      ASSERT_TRUE(contents) << name;
      EXPECT_TRUE(contents->damage.empty());
      EXPECT_EQ(contents->committed, at.written_until);
      EXPECT_EQ(contents->flushed, at.flushed);
      const auto whole = read_log(*keep(stores, at.log->open()), ReadDepth::payloads);
      ASSERT_TRUE(whole);
      EXPECT_EQ(contents->complete_bytes(), whole->complete_bytes());
    }
  }

  static LogStore* keep(std::vector<std::unique_ptr<LogStore>>& stores,
                        std::unique_ptr<LogStore> store) {
    stores.push_back(std::move(store));
    return stores.back().get();
  }
};

TEST(LogGuard, ProtectsUnequalLogsAgainstTheLossOfAnyNode) {
  for (const auto& [nodes, per_node, members, parities] :
       {std::array{2, 1, 1, 1}, {4, 2, 3, 1}, {5, 1, 3, 2}, {3, 2, 1, 1}, {3, 1, 8, 2}}) {
    World world{nodes, per_node, members, parities};
    world.run([&](Rank& mine, LogGuard& guard, Exchange& exchange) {
      for (int step = 0; step < 5; ++step) {
        const auto rank = static_cast<std::size_t>(exchange.rank());
        const auto seed = rank * 100 + static_cast<std::size_t>(step);
        // Some have nothing at first, and some have much: several parts.
        if (step >= exchange.rank() % 3) {
          const std::size_t length = step == 3 && rank % 2 == 0 ? 2'500'000 : 1000 * (rank + 1);
          World::write(mine, exchange.rank(), step * 3'000'000, noise(length, seed));
        }
        EXPECT_TRUE(guard.step(mine.writer.get(), step % 2 == 0));
      }
    });
    for (int node = 0; node < nodes; ++node) {
      world.expect_back_without({node});
      if (parities > 1) world.expect_back_without({node, (node + 1) % nodes});
    }
  }
}

TEST(LogGuard, LetsGoOfWhatIsFlushedEverywhere) {
  World world;
  world.run([&](Rank& mine, LogGuard& guard, Exchange& exchange) {
    for (int step = 0; step < 12; ++step) {
      World::write(mine, exchange.rank(), 0, noise(100'000, static_cast<std::uint64_t>(step)));
      EXPECT_TRUE(guard.step(mine.writer.get(), false));
      mine.flushed = mine.writer->last_sequence();
      EXPECT_TRUE(mine.writer->flushed(1, mine.flushed));
      EXPECT_TRUE(guard.step(mine.writer.get(), true));
      exchange.barrier();
    }
    const auto segments = [](const MemoryLog& log) {
      const auto files = log.files();
      return std::ranges::count_if(files, [](const auto& f) { return is_segment_name(f.first); });
    };
    EXPECT_LE(segments(*mine.log), 2);
    for (const auto& log : mine.parity) EXPECT_LE(segments(*log), 2);
    exchange.barrier();
    EXPECT_TRUE(guard.remove());
    for (const auto& log : mine.parity) EXPECT_TRUE(log->destroyed());
  });
}

TEST(LogGuard, FailsOnAllRanksWhereOneCannotKeepItsPiece) {
  for (const bool of_parity : {true, false}) {
    World world;
    // Rank 3 keeps the piece of ranks 0 to 2.
    Rank& bad = world.ranks[of_parity ? 3 : 1];
    const auto plan = std::make_shared<FaultPlan>(
        std::vector<Fault>{{.call = of_parity ? StorageCall::write : StorageCall::read,
                            .nth = of_parity ? 2 : 1,
                            .os_errno = EIO,
                            .lasting = true}});
    (of_parity ? bad.parity_plan : bad.log_plan) = plan;
    world.run([&](Rank& mine, LogGuard& guard, Exchange& exchange) {
      Status status;
      for (int step = 0; step < 4; ++step) {
        World::write(mine, exchange.rank(), 0, noise(1'500'000, 1));
        status = guard.step(mine.writer.get(), false);
        if (!status) break;
      }
      ASSERT_FALSE(status);
      EXPECT_EQ(status.error().kind, ErrorKind::io);
      EXPECT_FALSE(guard.step(mine.writer.get(), false)) << "nothing is protected any more";
      exchange.barrier();
    });
  }
}

TEST(LogGuard, MakesDurableWhatEarlierStepsLeft) {
  World world;
  const auto plan = std::make_shared<FaultPlan>();
  world.ranks[3].parity_plan = plan;  // It keeps the piece of ranks 0 to 2.
  world.run([&](Rank& mine, LogGuard& guard, Exchange& exchange) {
    World::write(mine, exchange.rank(), 0, noise(1000, 1));
    EXPECT_TRUE(guard.step(mine.writer.get(), false));
    EXPECT_EQ(plan->calls(StorageCall::sync), 0);
    exchange.barrier();
    EXPECT_TRUE(guard.step(mine.writer.get(), true));
    EXPECT_GT(plan->calls(StorageCall::sync), 0);
    exchange.barrier();
  });
}

TEST(LogGuard, HasNothingToDoForRanksWithoutLogs) {
  World world;
  world.run([](Rank& mine, LogGuard& guard, Exchange&) {
    EXPECT_TRUE(guard.step(nullptr, true));
    EXPECT_TRUE(guard.remove());
    EXPECT_TRUE(mine.parity.empty());
  });
}

}  // namespace
}  // namespace forebay
