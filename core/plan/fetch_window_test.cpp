// Goal: the window is as large as latency and bandwidth ask for, opens only as hints prove right,
// and never exceeds the budget.
// Method: transfers with made-up times.

#include "core/plan/fetch_window.hpp"

#include <gtest/gtest.h>

namespace forebay {
namespace {

constexpr std::int64_t ms = 1'000'000;
constexpr Bytes block = 256 * KiB;

TEST(FetchWindow, OpensByABlockForEachRightHint) {
  FetchWindow window(block, 8 * MiB);
  EXPECT_EQ(window.bytes(), 4 * block);
  window.confirm();
  window.confirm();
  EXPECT_EQ(window.bytes(), 6 * block);
  for (int i = 0; i < 100; ++i) window.confirm();
  EXPECT_EQ(window.bytes(), 8 * MiB);
  window.close();
  EXPECT_EQ(window.bytes(), 4 * block);
}

TEST(FetchWindow, IsFourTimesLatencyTimesBandwidth) {
  FetchWindow window(block, 64 * MiB);
  for (int i = 0; i < 1000; ++i) window.confirm();
  // Ten at once, 256 KiB each, all there 4 ms later: 2.5 MiB in 4 ms.
  const auto departure = window.depart(0);
  for (int i = 0; i < 10; ++i) window.arrive(departure, block, 4 * ms);
  EXPECT_EQ(window.latency_ns(), 4 * ms);
  EXPECT_NEAR(window.bytes_per_second(), 655.36e6, 1);
  EXPECT_EQ(window.bytes(), 40 * block);
}

TEST(FetchWindow, RequestsThatWaitBehindEachOtherDoNotWidenIt) {
  FetchWindow window(block, 64 * MiB);
  for (int i = 0; i < 1000; ++i) window.confirm();
  window.arrive(window.depart(0), block, 3 * ms);
  const Bytes alone = window.bytes();
  // The same device, 87 MB/s, with eight waiting: each later one takes longer.
  const auto departure = window.depart(10 * ms);
  for (int i = 1; i <= 8; ++i) window.arrive(departure, block, (10 + 3 * i) * ms);
  EXPECT_EQ(window.bytes(), alone);
}

TEST(FetchWindow, KeepsToTheBudget) {
  FetchWindow window(block, 3 * block + 1);
  for (int i = 0; i < 10; ++i) window.confirm();
  EXPECT_EQ(window.bytes(), 3 * block);
  window.arrive(window.depart(0), 100 * GiB, 1000 * ms);
  EXPECT_EQ(window.bytes(), 3 * block);
}

TEST(Confidence, IsLostAfterMissesAndComesBackWithHits) {
  Confidence confidence;
  for (int i = 0; i < 8; ++i) confidence.observe(false);
  EXPECT_FALSE(confidence.lost());
  confidence.observe(false);
  EXPECT_TRUE(confidence.lost());
  for (int i = 0; i < 4; ++i) confidence.observe(true);
  EXPECT_FALSE(confidence.lost());
}

TEST(Confidence, HalfRightIsEnough) {
  Confidence confidence;
  for (int i = 0; i < 1000; ++i) {
    confidence.observe(i % 2 == 0);
    ASSERT_FALSE(confidence.lost());
  }
}

}  // namespace
}  // namespace forebay
