// Goal: one server keeps its configured bandwidth, overlaps latencies up to its slots, and never
// answers before its model says. Method: virtual time, exact expectations from the model's
// formulas.

#include "testbed/server_queue.hpp"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace forebay::testbed {
namespace {

using namespace std::chrono_literals;

constexpr ServerParameters example{.bandwidth_bytes_per_s = 4 * MiB, .latency = 3ms, .slots = 10};

TEST(ServerQueue, AnswersTheWorkedExample) {
  ServerQueue server(example);
  EXPECT_EQ(server.submit(0s, 64 * KiB, 0s), 18'625us);
  EXPECT_EQ(server.submit(0s, 64 * KiB, 0s), 34'250us);
  EXPECT_EQ(server.submit(0s, 64 * KiB, 0s), 49'875us);
  EXPECT_EQ(server.busy(), 46'875us);
}

TEST(ServerQueue, KeepsTheConfiguredRateUnderLoad) {
  // Random sizes, a closed loop of 4 requests outstanding: the rate is the bandwidth within 5 %
  // (what is lost is the first latency alone).
  ServerQueue server(example);
  std::mt19937_64 random(1);
  std::uniform_int_distribution<Bytes> size(1, 256 * KiB);
  std::vector<Time> outstanding(4, 0s);
  Bytes total = 0;
  Time last{};
  for (int i = 0; i < 1000; ++i) {
    const auto next = std::min_element(outstanding.begin(), outstanding.end());
    const Bytes bytes = size(random);
    total += bytes;
    *next = last = server.submit(*next, bytes, 0s);
  }
  const double rate = static_cast<double>(total) / std::chrono::duration<double>(last).count();
  EXPECT_NEAR(rate / static_cast<double>(4 * MiB), 1.0, 0.05);
  EXPECT_LE(rate, static_cast<double>(4 * MiB));
}

TEST(ServerQueue, OverlapsLatenciesUpToTheSlots) {
  ServerQueue server(example);
  for (int i = 0; i < 25; ++i) {
    EXPECT_EQ(server.submit(0s, 0, 0s), (1 + i / 10) * 3ms) << "request " << i;
  }
  EXPECT_EQ(server.unanswered(0ms), 25u);
  EXPECT_EQ(server.unanswered(3ms), 15u);
  EXPECT_EQ(server.unanswered(6ms), 5u);
  EXPECT_EQ(server.unanswered(9ms), 0u);
}

TEST(ServerQueue, WithOneSlotEachRequestWaitsForTheAnswerBefore) {
  ServerQueue server({.bandwidth_bytes_per_s = 1 * MiB, .latency = 5ms, .slots = 1});
  EXPECT_EQ(server.submit(0s, 0, 0s), 5ms);
  EXPECT_EQ(server.submit(0s, MiB, 0s), 1010ms);
  EXPECT_EQ(server.submit(0s, 0, 0s), 1015ms);
}

TEST(ServerQueue, IdlesWithoutSavingUpCredit) {
  ServerQueue server(example);
  EXPECT_EQ(server.submit(0s, 4 * MiB, 0s), 1003ms);
  EXPECT_EQ(server.submit(10s, 4 * MiB, 0s), 11'003ms);
  EXPECT_EQ(server.unanswered(11s), 1u);
}

TEST(ServerQueue, IsBusyForTheExtraTime) {
  ServerQueue server(example);
  EXPECT_EQ(server.submit(0s, 0, 5ms), 8ms);
  EXPECT_EQ(server.submit(0s, 0, 5ms), 13ms);
  EXPECT_EQ(server.busy(), 10ms);
}

TEST(ServerQueue, TakesHugeTransfersAndHugeRates) {
  ServerQueue slow({.bandwidth_bytes_per_s = 1, .latency = 0s, .slots = 1});
  EXPECT_EQ(slow.submit(0s, 1'000'000'000, 0s), 1'000'000'000s);
  ServerQueue fast({.bandwidth_bytes_per_s = 1'000'000'000'000, .latency = 0s, .slots = 1});
  EXPECT_EQ(fast.submit(0s, 999'999'999'999, 0s), 1s);  // rounded up from 0.999999999999 s
}

}  // namespace
}  // namespace forebay::testbed
