// Goal: the emulated file system spreads bytes over its servers, keeps the configured aggregate
// rate, makes conflicting writers pay, and holds clients to their write-back window.
// Method: virtual time; closed-loop clients are simulated, and their rate must be within 5 % of the
// configured one, as must the mounted file system's (mounted_test.cpp) in real time.

#include "testbed/cluster.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

namespace forebay::testbed {
namespace {

using namespace std::chrono_literals;

ClusterParameters example() {
  return {.servers = 4,
          .stripe_size = 64 * KiB,
          .server = {.bandwidth_bytes_per_s = 4 * MiB, .latency = 3ms, .slots = 10},
          .lock_cost = 5ms};
}

double seconds(Time time) { return std::chrono::duration<double>(time).count(); }

TEST(Cluster, SplitsARequestIntoOnePartPerServer) {
  Cluster cluster(example());
  // Stripes 0..5: servers 0 and 1 hold two stripes each, and their two pieces are one request.
  EXPECT_EQ(cluster.read(0s, 1, 1, {0, 6 * 64 * KiB}), 31'250us + 3ms);
  const auto counters = cluster.counters(0s);
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(counters[i].read_requests, 1) << i;
    EXPECT_EQ(counters[i].read_bytes, (i < 2 ? 2 : 1) * 64 * KiB) << i;
    EXPECT_EQ(counters[i].queue, 1) << i;
    EXPECT_EQ(counters[i].busy, (i < 2 ? 2 : 1) * 15'625us) << i;
  }
}

TEST(Cluster, PutsStripesRoundRobin) {
  Cluster cluster(example());
  // Byte 300,000 is in stripe 4, on server 0; 30,000 bytes from there end in stripe 5.
  cluster.write(0s, 1, 1, {300'000, 30'000});
  const auto counters = cluster.counters(0s);
  EXPECT_EQ(counters[0].write_bytes, 5 * 65536 - 300'000);
  EXPECT_EQ(counters[1].write_bytes, 330'000 - 5 * 65536);
  EXPECT_EQ(counters[2].write_requests + counters[3].write_requests, 0);
}

TEST(Cluster, AnEmptyReadCostsOneLatency) {
  Cluster cluster(example());
  EXPECT_EQ(cluster.read(0s, 1, 1, {100 * KiB, 0}), 3ms);
  EXPECT_EQ(cluster.counters(0s)[1].read_requests, 1);
}

TEST(Cluster, SplitsEveryRandomExtentCompletely) {
  Cluster cluster(example());
  std::mt19937_64 random(2);
  std::uniform_int_distribution<Bytes> offset(0, 10 * MiB);
  std::uniform_int_distribution<Bytes> length(0, 2 * MiB);
  Bytes asked = 0;
  for (int i = 0; i < 500; ++i) {
    const Extent extent{offset(random), length(random)};
    asked += extent.length;
    cluster.read(0s, 1, 1, extent);
  }
  const auto counters = cluster.counters(0s);
  EXPECT_EQ(std::accumulate(counters.begin(), counters.end(), Bytes{0},
                            [](Bytes sum, const auto& c) { return sum + c.read_bytes; }),
            asked);
}

/// Simulates `clients` that each move `total` bytes of their own file region in `request` pieces,
/// each starting the next when the one before is answered. Returns bytes per second over all,
/// until every write is settled.
double closed_loop_rate(Cluster& cluster, int clients, Bytes total, Bytes request, bool writing) {
  std::vector<Time> now(static_cast<std::size_t>(clients), 0s);
  std::vector<Bytes> done(static_cast<std::size_t>(clients), 0);
  for (;;) {
    std::size_t next = now.size();
    for (std::size_t i = 0; i < now.size(); ++i) {
      if (done[i] < total && (next == now.size() || now[i] < now[next])) next = i;
    }
    if (next == now.size()) break;
    const Extent extent{static_cast<Bytes>(next) * total + done[next], request};
    const auto client = static_cast<ClientId>(next);
    now[next] = writing ? cluster.write(now[next], 1, client, extent)
                        : cluster.read(now[next], 1, client, extent);
    done[next] += request;
  }
  Time end{};
  for (std::size_t i = 0; i < now.size(); ++i) {
    end = std::max(end, cluster.settled(now[i], 1, static_cast<ClientId>(i)));
  }
  return static_cast<double>(clients * total) / seconds(end);
}

TEST(Cluster, ReachesTheAggregateBandwidth) {
  for (const bool writing : {false, true}) {
    for (const int clients : {1, 4, 64}) {
      Cluster cluster(example());
      const double rate = closed_loop_rate(cluster, clients, 16 * MiB, MiB, writing);
      EXPECT_NEAR(rate / (16.0 * MiB), 1.0, 0.05) << clients << " clients, writing " << writing;
    }
  }
}

TEST(Cluster, SmallReadsOfOneClientAreBoundByLatency) {
  Cluster cluster(example());
  const double rate = closed_loop_rate(cluster, 1, 4 * MiB, 4 * KiB, false);
  const double request_s = 4.0 * KiB / (4.0 * MiB) + 0.003;
  EXPECT_NEAR(rate, 4.0 * KiB / request_s, 0.001 * rate);
}

TEST(Cluster, AWriterOfAnotherClientsStripePaysTheLock) {
  Cluster cluster(example());
  cluster.write(0s, 1, 1, {0, 10});
  EXPECT_EQ(cluster.counters(0s)[0].lock_conflicts, 0) << "nobody held the stripe";
  cluster.write(1s, 1, 1, {10, 10});
  EXPECT_EQ(cluster.counters(1s)[0].lock_conflicts, 0) << "the client's own stripe";
  const Time busy = cluster.counters(1s)[0].busy;
  cluster.write(2s, 1, 2, {20, 10});
  EXPECT_EQ(cluster.counters(2s)[0].lock_conflicts, 1);
  EXPECT_GE(cluster.counters(2s)[0].busy - busy, 5ms);
  EXPECT_GE(cluster.settled(2s, 1, 2), 2s + 8ms) << "lock and latency";
  cluster.write(3s, 1, 1, {30, 10});
  EXPECT_EQ(cluster.counters(3s)[0].lock_conflicts, 2) << "back again";
  cluster.write(4s, 2, 2, {0, 10});
  EXPECT_EQ(cluster.counters(4s)[0].lock_conflicts, 2) << "another file";
  cluster.read(5s, 1, 2, {0, 10});
  EXPECT_EQ(cluster.counters(5s)[0].lock_conflicts, 2) << "reads take no locks";
}

TEST(Cluster, InterleavedWritersCollapseWhereDisjointOnesDoNot) {
  // 4 clients, 16 KiB pieces dealt like cards: every stripe has 4 writers, in rounds.
  Cluster interleaved(example());
  Cluster disjoint(example());
  Time end_interleaved{};
  Time end_disjoint{};
  for (int round = 0; round < 100; ++round) {
    for (ClientId client = 0; client < 4; ++client) {
      const Bytes piece = 16 * KiB;
      interleaved.write(0s, 1, client, {(round * 4 + client) * piece, piece});
      disjoint.write(0s, 1, client, {(client * 100 + round) * piece, piece});
    }
  }
  for (ClientId client = 0; client < 4; ++client) {
    end_interleaved = std::max(end_interleaved, interleaved.settled(0s, 1, client));
    end_disjoint = std::max(end_disjoint, disjoint.settled(0s, 1, client));
  }
  // 3 of 4 pieces pay 5 ms on top of 3.9 ms: 1.96 times as long.
  EXPECT_NEAR(seconds(end_interleaved) / seconds(end_disjoint), 1.96, 0.05);
}

TEST(Cluster, LocksEndWithTruncationAndLastClose) {
  Cluster cluster(example());
  cluster.write(0s, 1, 1, {0, 256 * KiB});
  cluster.truncate(1, 65 * KiB);
  cluster.write(1s, 1, 2, {0, 256 * KiB});
  auto counters = cluster.counters(1s);
  EXPECT_EQ(counters[0].lock_conflicts, 1);
  EXPECT_EQ(counters[1].lock_conflicts, 1) << "a stripe cut in two keeps its lock";
  EXPECT_EQ(counters[2].lock_conflicts, 0);
  cluster.forget(1s, 1);
  cluster.write(2s, 1, 1, {0, 256 * KiB});
  EXPECT_EQ(cluster.counters(2s)[0].lock_conflicts, 1);
}

TEST(Cluster, NamesCostNothingWhereObjectsDoNot) {
  Cluster cluster(example());
  EXPECT_EQ(cluster.metadata(5s), 5s);
}

TEST(Cluster, AFileWithMoreServersKeepsTheMetadataServerBusyForLonger) {
  ClusterParameters parameters = example();
  parameters.object_cost = 2ms;
  Cluster wide(parameters);
  EXPECT_EQ(wide.metadata(0s), 4 * 2ms + 3ms);
  EXPECT_EQ(wide.metadata(0s), 2 * 4 * 2ms + 3ms) << "one after the other";
  EXPECT_EQ(wide.read(0s, 1, 1, {0, 0}), 3ms) << "the others do not wait for it";
  parameters.servers = 1;
  Cluster narrow(parameters);
  EXPECT_EQ(narrow.metadata(0s), 2ms + 3ms);
}

TEST(Cluster, AcknowledgesWritesWithinTheWindowAtOnce) {
  Cluster cluster(example());
  for (int i = 0; i < 10; ++i) EXPECT_EQ(cluster.write(0s, 1, 1, {0, 64 * KiB}), 0s) << i;
  // The eleventh waits for the first, whose 64 KiB take 15.625 ms and 3 ms.
  EXPECT_EQ(cluster.write(0s, 1, 1, {0, 64 * KiB}), 18'625us);
  EXPECT_EQ(cluster.write(18'625us, 1, 1, {0, 64 * KiB}), 34'250us);
  EXPECT_EQ(cluster.write(18'625us, 1, 2, {4 * MiB, 1}), 18'625us) << "another client's window";
  EXPECT_EQ(cluster.write(18'625us, 1, 1, {64 * KiB, 1}), 18'625us) << "another server";
  EXPECT_EQ(cluster.settled(18'625us, 1, 1), 12 * 15'625us + 3ms);
}

TEST(Cluster, ReadsWaitForTheClientsOwnWritesToTheFile) {
  Cluster cluster(example());
  cluster.write(0s, 1, 1, {0, 64 * KiB});
  EXPECT_EQ(cluster.read(0s, 1, 1, {64 * KiB, 0}), 18'625us) << "a write on another server";
  EXPECT_EQ(cluster.read(0s, 2, 1, {128 * KiB, 0}), 3ms) << "another file";
  EXPECT_EQ(cluster.read(0s, 1, 2, {192 * KiB, 0}), 3ms) << "another client";
}

TEST(Cluster, SettledIsNowOnceAnswersHavePassed) {
  Cluster cluster(example());
  EXPECT_EQ(cluster.settled(7s, 1, 1), 7s);
  cluster.write(7s, 1, 1, {0, 64 * KiB});
  EXPECT_EQ(cluster.settled(7s, 1, 1), 7s + 18'625us);
  EXPECT_EQ(cluster.settled(8s, 1, 1), 8s);
}

}  // namespace
}  // namespace forebay::testbed
