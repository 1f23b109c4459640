// Goal: a reader in front waits for those that reach it soon, and for nobody else.  Method: made-up
// readers, whose places are told at made-up times.

#include "core/plan/catch_up_wait.hpp"

#include <gtest/gtest.h>

#include <array>

namespace forebay {
namespace {

constexpr std::int64_t ms = 1'000'000;
constexpr Bytes harmless = 4 * MiB;

/// A reader that has read 1 MiB in each of `now_ms`, and others that are so far behind.
template <std::size_t count>
CatchUpWait::Seen seen(std::int64_t now_ms, const std::array<Bytes, count>& behind,
                       bool is_full = true) {
  return {.passed = now_ms * MiB, .reading_ns = now_ms * ms, .behind = behind, .is_full = is_full};
}

template <typename... Count>
std::array<Bytes, sizeof...(Count)> behind(Count... mebibytes) {
  return {mebibytes * MiB...};
}

TEST(CatchUpWait, GoesOnWhileThePageCacheHoldsWhatLiesBetween) {
  CatchUpWait wait(harmless);
  EXPECT_FALSE(wait.waits(seen(50, behind(12), false)));
  EXPECT_TRUE(wait.waits(seen(50, behind(12))));
}

TEST(CatchUpWait, WaitsUntilTheLastInReachIsNear) {
  CatchUpWait wait(harmless);
  EXPECT_TRUE(wait.waits(seen(50, behind(6, 20))));
  EXPECT_TRUE(wait.waits(seen(100, behind(0, 15)))) << "55 MiB read in 50 ms";
  EXPECT_TRUE(wait.waits(seen(110, behind(0, 5), false))) << "a wait is not cut short by the cache";
  EXPECT_FALSE(wait.waits(seen(111, behind(0, 4))));
  EXPECT_FALSE(wait.waits(seen(112, behind(4, 3)))) << "harmless";
}

TEST(CatchUpWait, WhoDoesNotReadIsNotWaitedForAndSoonNotAskedFor) {
  CatchUpWait wait(harmless);
  // It reads nothing: it falls behind by what this one reads.
  EXPECT_TRUE(wait.waits(seen(50, behind(12))));
  EXPECT_TRUE(wait.waits(seen(99, behind(61))));
  EXPECT_FALSE(wait.waits(seen(100, behind(62))));
  EXPECT_FALSE(wait.waits(seen(599, behind(12)))) << "ten times as long as was waited";
  EXPECT_TRUE(wait.waits(seen(600, behind(12))));
}

TEST(CatchUpWait, WhoHasJustComeMayBeFast) {
  CatchUpWait wait(harmless);
  EXPECT_TRUE(wait.waits(seen(50, behind(12, 0))));
  EXPECT_TRUE(wait.waits(seen(100, behind(62, 100)))) << "the first reads nothing";
  EXPECT_FALSE(wait.waits(seen(150, behind(112, 150)))) << "nor does the second";
}

TEST(CatchUpWait, WhoIsTooFarBehindIsNotWaitedFor) {
  CatchUpWait wait(harmless);
  // It could come nearer by 200 MiB in the time that waiting may take, and a tenth of what was
  // read.
  EXPECT_FALSE(wait.waits(seen(1000, behind(301))));
  EXPECT_TRUE(wait.waits(seen(1000, behind(301, 10)))) << "another one is nearer";
}

TEST(CatchUpWait, WhoComesTooSlowlyIsNotWaitedFor) {
  CatchUpWait wait(harmless);
  EXPECT_TRUE(wait.waits(seen(50, behind(40))));
  // 20 MiB in 50 ms; 160 ms are left, in which it does not make up for 70 MiB.
  EXPECT_FALSE(wait.waits(seen(100, behind(70))));
}

TEST(CatchUpWait, AllWaitingTogetherHasALimit) {
  CatchUpWait wait(harmless);
  std::int64_t waited_ms = 0;
  // One that always comes, and falls back at once.
  for (std::int64_t now_ms = 1; now_ms <= 2000; ++now_ms) {
    if (wait.waits(seen(now_ms, behind(now_ms % 40 == 39 ? 1 : 8)))) ++waited_ms;
  }
  EXPECT_GT(waited_ms, 200);
  EXPECT_LE(waited_ms, 400);
}

TEST(CatchUpWait, AfterAllOfItWasUsedInVainOneReadsForLong) {
  CatchUpWait wait(harmless);
  // As fast as this one, which does not stand still: it never comes nearer.
  std::int64_t now_ms = 50;
  while (wait.waits(seen(now_ms, behind(12)))) ++now_ms;
  EXPECT_LE(now_ms, 280);
  for (const std::int64_t end_ms = now_ms + 1000; now_ms < end_ms; ++now_ms) {
    EXPECT_FALSE(wait.waits(seen(now_ms, behind(12)))) << now_ms;
  }
}

TEST(CatchUpWait, TheFirstMomentTellsNothing) {
  CatchUpWait wait(harmless);
  EXPECT_FALSE(wait.waits({.passed = MiB, .reading_ns = 0, .behind = {}, .is_full = true}));
}

}  // namespace
}  // namespace forebay
