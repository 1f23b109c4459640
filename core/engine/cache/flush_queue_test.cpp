// Goal: units come out once each, oldest first on each server, servers in turn.
// Method: worked examples, and random layouts for the size of a unit.

#include "core/engine/cache/flush_queue.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

namespace forebay {
namespace {

using Units = std::vector<std::int64_t>;

Units drained(FlushQueue& queue) {
  Units units;
  while (const auto unit = queue.pop()) units.push_back(*unit);
  EXPECT_TRUE(queue.empty());
  return units;
}

TEST(FlushQueue, GoesFromServerToServer) {
  FlushQueue queue({.stripe_size = 64 * KiB, .servers = 4}, 16 * MiB, 1);
  EXPECT_EQ(queue.unit_bytes(), 64 * KiB);
  for (const std::int64_t unit : {0, 1, 2, 4, 5}) queue.ready(unit);
  EXPECT_EQ(drained(queue), (Units{1, 2, 0, 5, 4}));
}

TEST(FlushQueue, StartsEachWriterWithAnotherServer) {
  for (int writer = 0; writer < 9; ++writer) {
    FlushQueue queue({.stripe_size = 64 * KiB, .servers = 4}, 16 * MiB, writer);
    for (std::int64_t unit = 0; unit < 8; ++unit) queue.ready(unit);
    EXPECT_EQ(queue.pop(), writer % 4);
  }
}

TEST(FlushQueue, KeepsTheOrderOfArrivalWithoutStripes) {
  FlushQueue queue({}, 4 * MiB, 3);
  EXPECT_EQ(queue.unit_bytes(), 4 * MiB);
  EXPECT_EQ(queue.unit_of(4 * MiB - 1), 0);
  EXPECT_EQ(queue.extent_of(2), (Extent{8 * MiB, 4 * MiB}));
  for (const std::int64_t unit : {7, 3, 5, 3, 7}) queue.ready(unit);
  EXPECT_EQ(drained(queue), (Units{7, 3, 5}));
}

TEST(FlushQueue, HoldsUnitsUntilTheyAreReleased) {
  FlushQueue queue({}, MiB, 0);
  queue.hold(2);
  queue.hold(1);
  queue.hold(3);
  EXPECT_EQ(queue.pop(), std::nullopt);
  queue.ready(1);
  queue.hold(1);
  EXPECT_EQ(drained(queue), Units{1}) << "ready stays ready";
  queue.hold(4);
  queue.release_held();
  EXPECT_EQ(drained(queue), (Units{2, 3, 4}));
  queue.release_held();
  EXPECT_TRUE(queue.empty());
}

TEST(FlushQueue, ForgetsEverything) {
  FlushQueue queue({.stripe_size = 4, .servers = 2}, MiB, 0);
  queue.ready(1);
  queue.hold(2);
  queue.clear();
  queue.release_held();
  EXPECT_EQ(queue.pop(), std::nullopt);
  queue.ready(1);
  EXPECT_EQ(drained(queue), Units{1});
}

RC_GTEST_PROP(FlushQueueProperty, cuts_stripes_evenly, ()) {
  const auto stripe = *rc::gen::inRange<Bytes>(1, 100'000);
  const auto largest = *rc::gen::inRange<Bytes>(1, 200'000);
  const FlushQueue queue({.stripe_size = stripe, .servers = 3}, largest, 0);
  RC_ASSERT(queue.unit_bytes() <= largest);
  RC_ASSERT(queue.unit_bytes() <= stripe);
  RC_ASSERT(stripe % queue.unit_bytes() == 0);
}

}  // namespace
}  // namespace forebay
