// Goal: a place in the order of reading is one number, the same for all readers of a plan, and
// leads back to where it came from. Method: small plans, worked out by hand; and random ones, whose
// extents are gone through.

#include "core/plan/plan_places.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <optional>
#include <vector>

#include "core/plan/fetch_plan.hpp"

namespace forebay {
namespace {

TEST(PlanPlaces, CountTheBytesThatAreReadBefore) {
  const PlanPlaces places({{1000, 10}, {0, 20}, {5000, 5}});
  EXPECT_EQ(places.of(1000, 0), 0);
  EXPECT_EQ(places.of(1009, 0), 9);
  EXPECT_EQ(places.of(0, 0), 10);
  EXPECT_EQ(places.of(5004, 0), 34);
  EXPECT_EQ(places.of(1010, 0), std::nullopt);
  EXPECT_EQ(places.end(), 35);
}

TEST(PlanPlaces, WhatIsReadTwiceIsFoundWhereTheReaderIs) {
  const PlanPlaces places({{100, 10}, {0, 20}, {100, 10}});
  EXPECT_EQ(places.of(105, 0), 5);
  EXPECT_EQ(places.of(105, 5), 5) << "it is in that extent";
  EXPECT_EQ(places.of(105, 10), 35);
  EXPECT_EQ(places.of(3, 40), 13) << "behind, from the beginning";
}

TEST(PlanPlaces, LeadBackToThePlan) {
  FetchPlan plan({{100 * KiB, 6 * KiB}, {0, 4 * KiB}}, MiB);
  const PlanPlaces places(plan.extents());
  EXPECT_EQ(places.of(plan.position()), 0);
  ASSERT_TRUE(plan.next({4 * KiB, {}}).has_value());
  EXPECT_EQ(places.of(plan.position()), 4 * KiB);
  const auto next_from = [&](Bytes place) {
    plan.go_to(places.at(place));
    const auto piece = plan.next({4 * KiB, {}});
    return piece ? piece->hull() : Extent{};
  };
  EXPECT_EQ(next_from(5 * KiB), (Extent{105 * KiB, KiB}));
  EXPECT_EQ(next_from(6 * KiB), (Extent{0, 4 * KiB}));
  EXPECT_EQ(places.of(plan.position()), places.end());
  plan.go_to(places.at(places.end()));
  EXPECT_TRUE(plan.at_end());
  EXPECT_FALSE(plan.next({4 * KiB, {}}).has_value());
}

TEST(PlanPlaces, OfNothingAreNone) {
  const PlanPlaces places;
  EXPECT_EQ(places.end(), 0);
  EXPECT_EQ(places.of(0, 0), std::nullopt);
}

/// Of the byte at `offset`, from the extent on in which the place `from` is.
std::optional<Bytes> plainly(const std::vector<Extent>& extents, Bytes offset, Bytes from) {
  std::optional<Bytes> before_it;
  Bytes place = 0;
  for (const Extent& extent : extents) {
    const bool is_passed = place + extent.length <= from;
    const bool holds = offset >= extent.offset && offset < extent.end();
    if (holds && !is_passed) return place + offset - extent.offset;
    if (holds && !before_it) before_it = place + offset - extent.offset;
    place += extent.length;
  }
  return before_it;
}

RC_GTEST_PROP(PlanPlacesProperty, are_those_that_going_through_the_plan_finds, ()) {
  std::vector<Extent> extents;
  for (int left = *rc::gen::inRange(0, 12); left > 0; --left) {
    extents.push_back({*rc::gen::inRange<Bytes>(0, 30), *rc::gen::inRange<Bytes>(1, 10)});
  }
  const PlanPlaces places(extents);
  const Bytes from = *rc::gen::inRange<Bytes>(0, places.end() + 1);
  for (Bytes offset = 0; offset < 40; ++offset) {
    RC_ASSERT(places.of(offset, from) == plainly(extents, offset, from));
  }
}

}  // namespace
}  // namespace forebay
