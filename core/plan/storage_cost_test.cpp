// Goal: what storage calls cost is told right from few and noisy times, every rank comes to the
// same figure, and what is noise changes nothing.
// Method: times are made from a known cost, with outliers; words of several ranks are heard.

#include "core/plan/storage_cost.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace forebay {
namespace {

using testing::DoubleNear;

const StorageCost expected = expected_cost({}, true);
const CostBelief at_first{expected, expected};

/// `count` calls of the sizes in turn, at this cost.
std::vector<TimedCall> calls_at(const StorageCost& cost, const std::vector<Bytes>& sizes,
                                int count) {
  std::vector<TimedCall> calls;
  for (int i = 0; i < count; ++i) {
    const Bytes bytes = sizes[static_cast<std::size_t>(i) % sizes.size()];
    calls.push_back({bytes, static_cast<std::int64_t>(cost.of(bytes))});
  }
  return calls;
}

TEST(FitCost, SizesThatDifferTellCallsAndBytesApart) {
  const StorageCost truth{.call_ns = 2e6, .byte_ns = 25};
  const auto fit = fit_cost(calls_at(truth, {100, 64 * KiB, MiB}, 12), at_first);
  ASSERT_TRUE(fit);
  EXPECT_THAT(fit->call_ns, DoubleNear(2e6, 10));
  EXPECT_THAT(fit->byte_ns, DoubleNear(25, 0.01));
}

TEST(FitCost, AFewCallsHeldUpDoNotMatter) {
  const StorageCost truth{.call_ns = 2e6, .byte_ns = 25};
  auto calls = calls_at(truth, {100, 64 * KiB, MiB, 300 * KiB}, 32);
  for (std::size_t i = 0; i < calls.size(); i += 9) calls[i].ns += 10'000'000'000;
  const auto fit = fit_cost(calls, at_first);
  ASSERT_TRUE(fit);
  EXPECT_THAT(fit->call_ns, DoubleNear(2e6, 10));
  EXPECT_THAT(fit->byte_ns, DoubleNear(25, 0.01));
  auto cached = calls_at(expected, {64 * KiB}, 8);
  cached[5].ns += 1'000'000'000;
  EXPECT_FALSE(fit_cost(cached, at_first)->measured);
}

/// A file system that buffers a few writes takes those at once and lets the next wait.
TEST(FitCost, CallsThatWaitInTurnCountWithTheirMean) {
  auto calls = calls_at({.call_ns = 20'000}, {24 * KiB}, 32);
  for (std::size_t i = 0; i < calls.size(); i += 3) calls[i].ns = 12'000'000;
  const auto fit = fit_cost(calls, at_first);
  ASSERT_TRUE(fit);
  EXPECT_GT(fit->call_ns, 2e6);
}

TEST(FitCost, OfOneSizeTheLargerPartTakesTheDifference) {
  const auto small = fit_cost(calls_at({.call_ns = 3e6}, {64 * KiB}, 8), at_first);
  ASSERT_TRUE(small);
  EXPECT_THAT(small->call_ns, DoubleNear(3e6, 1e5));
  EXPECT_LT(small->byte_ns, 1);
  const auto large = fit_cost(calls_at({.call_ns = 1e9}, {16 * MiB}, 8), at_first);
  ASSERT_TRUE(large);
  EXPECT_LT(large->call_ns, 5e6);
  EXPECT_THAT(large->byte_ns, DoubleNear(59, 1));
  for (const auto& [fit, bytes, ns] :
       {std::tuple{*small, 64 * KiB, 3e6}, {*large, 16 * MiB, 1e9}}) {
    EXPECT_THAT(fit.of(bytes), DoubleNear(ns, 2)) << bytes;
  }
}

TEST(FitCost, OfOneSizeWhatIsHeldSaysWhichPartIsTheLarger) {
  const StorageCost narrow{.call_ns = 2000, .byte_ns = 45, .measured = true};
  const auto fit = fit_cost(calls_at({.call_ns = 10e6}, {64 * KiB}, 8), {expected, narrow});
  ASSERT_TRUE(fit);
  EXPECT_LT(fit->call_ns, 20'000);
  EXPECT_GT(fit->byte_ns, 140);
}

TEST(FitCost, ContentionForAPageCacheIsNoSlowness) {
  const StorageCost crowded{.call_ns = 8 * expected.call_ns, .byte_ns = 8 * expected.byte_ns};
  const auto calls = calls_at(crowded, {8, 64 * KiB, MiB}, 12);
  const auto patient = fit_cost(calls, {expected, expected, 4 * 8});
  ASSERT_TRUE(patient);
  EXPECT_EQ(patient->call_ns, expected.call_ns);
  EXPECT_FALSE(patient->measured);
  EXPECT_GT(fit_cost(calls, at_first)->call_ns, 4 * expected.call_ns);
}

TEST(FitCost, WhatFitsBothSaysNothingAgainstWhatIsHeld) {
  const StorageCost dear{.call_ns = 3e6, .byte_ns = 0.4, .measured = true};
  EXPECT_FALSE(fit_cost(calls_at(dear, {MiB}, 8), {expected, dear, 4 * 8}));
  const auto fast = fit_cost(calls_at(expected, {MiB}, 8), {expected, dear, 4 * 8});
  ASSERT_TRUE(fast);
  EXPECT_FALSE(fast->measured);
}

TEST(FitCost, OneCallOfAnotherSizeIsNoLine) {
  auto calls = calls_at({.call_ns = 3e6}, {100}, 8);
  calls.push_back({MiB, 5'000'000'000});
  const auto fit = fit_cost(calls, at_first);
  ASSERT_TRUE(fit);
  EXPECT_LT(fit->byte_ns, 100);
}

TEST(FitCost, AFewCallsSayNothing) {
  EXPECT_FALSE(fit_cost(calls_at({.call_ns = 3e6}, {100}, 3), at_first));
  EXPECT_FALSE(fit_cost({}, at_first));
}

TEST(FitCost, ImpossibleTimesStayInBounds) {
  // A larger call that took less time, and clocks that went backwards.
  for (const auto& calls : {std::vector<TimedCall>(8, {0, -5}),
                            calls_at({.call_ns = 1e9, .byte_ns = -900}, {100, MiB}, 8),
                            std::vector<TimedCall>(8, {8, INT64_MAX})}) {
    const auto fit = fit_cost(calls, at_first);
    ASSERT_TRUE(fit);
    EXPECT_GE(fit->call_ns, 0);
    EXPECT_LE(fit->call_ns, 1e10);
    EXPECT_GE(fit->byte_ns, 0);
    EXPECT_LE(fit->byte_ns, 1e4);
  }
}

CostSteps call_steps(double call_ns) {
  return to_steps({.call_ns = call_ns, .byte_ns = expected.byte_ns});
}

TEST(HeldCost, BeginsWithWhatIsExpected) {
  const HeldCost held(expected);
  EXPECT_EQ(held.cost().call_ns, expected.call_ns);
  EXPECT_EQ(held.cost().byte_ns, expected.byte_ns);
  EXPECT_FALSE(held.cost().measured);
}

TEST(HeldCost, RisesByTheLeastThatAllAskFor) {
  HeldCost held(expected);
  held.hear(call_steps(1e6), call_steps(9e6));
  EXPECT_TRUE(held.cost().measured);
  EXPECT_THAT(held.cost().call_ns, DoubleNear(1e6, 1e5));
  EXPECT_EQ(held.cost().byte_ns, expected.byte_ns);
}

TEST(HeldCost, OneRankAloneMovesNothing) {
  HeldCost held(expected);
  held.hear(call_steps(expected.call_ns), call_steps(9e6));
  EXPECT_FALSE(held.cost().measured);
  held.hear(call_steps(3e6), call_steps(3e6));
  held.hear(call_steps(expected.call_ns), call_steps(3e6));
  EXPECT_THAT(held.cost().call_ns, DoubleNear(3e6, 3e5));
}

TEST(HeldCost, NoiseMovesNothing) {
  HeldCost held(expected);
  held.hear(call_steps(3 * expected.call_ns), call_steps(3 * expected.call_ns));
  EXPECT_FALSE(held.cost().measured);
  held.hear(call_steps(1e6), call_steps(1e6));
  const double before = held.cost().call_ns;
  held.hear(call_steps(3e6), call_steps(3e6));
  held.hear(call_steps(0.4e6), call_steps(0.4e6));
  EXPECT_EQ(held.cost().call_ns, before);
}

TEST(HeldCost, SilenceMovesNothing) {
  HeldCost held(expected);
  held.hear(call_steps(1e6), call_steps(1e6));
  const double before = held.cost().call_ns;
  held.hear({no_step, no_step}, {no_step, no_step});
  EXPECT_EQ(held.cost().call_ns, before);
}

TEST(HeldCost, FallsBackToWhatIsExpectedAndNoFurther) {
  HeldCost held(expected);
  held.hear(call_steps(1e6), call_steps(1e6));
  held.hear(call_steps(10), call_steps(10));
  EXPECT_EQ(held.cost().call_ns, expected.call_ns);
  EXPECT_FALSE(held.cost().measured);
}

TEST(HeldCost, MayStartWhereAnotherFileEnded) {
  HeldCost first(expected);
  first.hear(call_steps(2e6), call_steps(2e6));
  HeldCost second(expected, first.steps());
  EXPECT_EQ(second.cost().call_ns, first.cost().call_ns);
  EXPECT_TRUE(second.cost().measured);
  second.hear(call_steps(10), call_steps(10));
  EXPECT_FALSE(second.cost().measured);
  EXPECT_FALSE(HeldCost(expected, call_steps(1)).cost().measured);
}

TEST(CostSteps, AreNeverSilentAndKeepTheirOrder) {
  CostSteps last{};
  for (double ns = 1e-6; ns < 1e20; ns *= 3) {
    const CostSteps steps = to_steps({.call_ns = ns, .byte_ns = ns});
    EXPECT_NE(steps[0], no_step);
    EXPECT_NE(steps[1], no_step);
    EXPECT_GE(steps[0], last[0]);
    EXPECT_GE(steps[1], last[1]);
    last = steps;
  }
}

TEST(AutomaticIoDepth, ThreadsOnlyWhereACallerWouldWait) {
  constexpr Bytes window = 512 * KiB;
  EXPECT_GT(automatic_io_depth({.stripe_size = MiB, .servers = 4}, true, {}, window), 1);
  EXPECT_EQ(automatic_io_depth({}, true, expected, window), 0);
  const StorageCost slow{.call_ns = 3e6, .byte_ns = 0.4, .measured = true};
  EXPECT_GT(automatic_io_depth({}, true, slow, window), 0);
  const StorageCost narrow{.call_ns = 1000, .byte_ns = 20, .measured = true};
  EXPECT_GT(automatic_io_depth({}, true, narrow, window), 0);
  // Dear calls do not matter where a window is one long copy.
  const StorageCost copy{.call_ns = 5000, .byte_ns = 0.4, .measured = true};
  EXPECT_EQ(automatic_io_depth({}, true, copy, window), 0);
}

}  // namespace
}  // namespace forebay
