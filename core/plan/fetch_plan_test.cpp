// Goal: the pieces of a plan are what was declared, in its order, and each fits a block.
// Method: the worked example and the mistakes people make, then random extents against a plain
// walk over them byte by byte.

#include "core/plan/fetch_plan.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <limits>
#include <set>
#include <vector>

namespace forebay {

void PrintTo(const Extent& extent, std::ostream* out) {
  *out << '{' << extent.offset << ", " << extent.length << '}';
}

namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<Extent> pieces(FetchPlan plan) {
  std::vector<Extent> result;
  while (const auto piece = plan.next()) result.push_back(*piece);
  return result;
}

TEST(FetchPlan, NeighboursAreReadAsOneAndCutAtBlocks) {
  const FetchPlan plan({{100, 200}, {400, 16000}}, GiB, 8 * KiB);
  EXPECT_THAT(pieces(plan), ElementsAre(Extent{100, 8092}, Extent{8192, 8192}, Extent{16384, 16}));
  EXPECT_EQ(plan.bytes(), 16300);
}

TEST(FetchPlan, TheOrderOfReadingIsKeptAlsoBackwards) {
  const FetchPlan plan({{1 * MiB, 10}, {0, 10}, {1 * MiB, 10}}, GiB, MiB);
  EXPECT_THAT(pieces(plan), ElementsAre(Extent{1 * MiB, 10}, Extent{0, 10}, Extent{1 * MiB, 10}));
}

TEST(FetchPlan, LengthZeroIsToTheEndOfTheFile) {
  EXPECT_THAT(pieces(FetchPlan({{0, 0}}, 10000, 8 * KiB)),
              ElementsAre(Extent{0, 8192}, Extent{8192, 1808}));
  EXPECT_THAT(pieces(FetchPlan({{9000, 0}}, 10000, 8 * KiB)), ElementsAre(Extent{9000, 1000}));
}

TEST(FetchPlan, WhatLiesOutsideTheFileIsCountedAndLeftOut) {
  constexpr Bytes most = std::numeric_limits<Bytes>::max();
  const FetchPlan plan({{10000, 1}, {-1, 5}, {5, -1}, {most, most}, {9999, most}}, 10000, 4 * KiB);
  EXPECT_EQ(plan.outside(), 4U);
  EXPECT_THAT(pieces(plan), ElementsAre(Extent{9999, 1}));
  EXPECT_THAT(pieces(FetchPlan({{0, 0}}, 0, 4 * KiB)), IsEmpty());
  EXPECT_THAT(pieces(FetchPlan({}, 100, 4 * KiB)), IsEmpty());
}

TEST(FetchPlan, GoesWhereTheReaderWent) {
  FetchPlan plan({{0, 100}, {MiB, 100}, {2 * MiB, 100}, {0, 50}}, GiB, 4 * KiB);
  EXPECT_TRUE(plan.seek(2 * MiB + 40));
  EXPECT_EQ(plan.next(), (Extent{2 * MiB + 40, 60}));
  EXPECT_FALSE(plan.seek(500));
  EXPECT_EQ(plan.next(), (Extent{0, 50})) << "the next one from here, not the first";
  EXPECT_TRUE(plan.at_end());
  EXPECT_TRUE(plan.seek(MiB)) << "also from the end";
  EXPECT_EQ(plan.next(), (Extent{MiB, 100}));
  EXPECT_FALSE(FetchPlan().seek(0));
}

RC_GTEST_PROP(FetchPlanProperty, PiecesHoldAllThatWasDeclaredAndFit, ()) {
  const Bytes size = *rc::gen::inRange<Bytes>(1, 40'000);
  const Bytes block = direct_alignment * *rc::gen::inRange<Bytes>(1, 5);
  const auto extents = *rc::gen::container<std::vector<Extent>>(rc::gen::construct<Extent>(
      rc::gen::inRange<Bytes>(0, 44'000), rc::gen::inRange<Bytes>(1, 6'000)));
  const FetchPlan plan(extents, size, block);
  std::set<Bytes> transferred;
  Bytes sum = 0;
  for (const Extent& piece : pieces(plan)) {
    RC_ASSERT(piece.length > 0);
    RC_ASSERT(piece.offset >= 0);
    RC_ASSERT(piece.end() <= size);
    RC_ASSERT(transfer_of(piece).length <= block);
    sum += piece.length;
    for (Bytes at = piece.offset; at < piece.end(); ++at) transferred.insert(at);
  }
  RC_ASSERT(sum == plan.bytes());
  std::size_t outside = 0;
  for (const Extent& extent : extents) {
    if (extent.offset >= size) ++outside;
    for (Bytes at = extent.offset; at < std::min(extent.end(), size); ++at) {
      RC_ASSERT(transferred.contains(at));
    }
  }
  RC_ASSERT(outside == plan.outside());
}

}  // namespace
}  // namespace forebay
