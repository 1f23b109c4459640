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

std::vector<Extent> pieces(FetchPlan plan, const RequestShape& shape) {
  std::vector<Extent> result;
  while (const auto piece = plan.next(shape)) result.push_back(piece->hull());
  return result;
}

std::vector<Extent> pieces(FetchPlan plan, Bytes most) {
  return pieces(std::move(plan), {most, std::nullopt});
}

TEST(FetchPlan, NeighboursAreReadAsOneAndCutAtBlocks) {
  const FetchPlan plan({{100, 200}, {400, 16000}}, GiB);
  EXPECT_THAT(pieces(plan, 8 * KiB),
              ElementsAre(Extent{100, 8092}, Extent{8192, 8192}, Extent{16384, 16}));
  EXPECT_EQ(plan.bytes(), 16300);
}

TEST(FetchPlan, WhatLiesBetweenNeighboursIsNotDeclared) {
  const FetchPlan plan({{400, 0}, {-5, 10}, {100, 200}, {20000, 1}}, 16400);
  EXPECT_EQ(plan.declared().overlap({0, 20001}), 200 + 16000);
  EXPECT_TRUE(plan.lies_between({300, 100}));
  EXPECT_FALSE(plan.lies_between({300, 101}));
  EXPECT_FALSE(plan.lies_between({50, 50})) << "there is nothing before it";
  EXPECT_FALSE(FetchPlan({{0, MiB}, {2 * MiB, MiB}}, GiB).lies_between({MiB, MiB}));
}

TEST(FetchPlan, TheOrderOfReadingIsKeptAlsoBackwards) {
  const FetchPlan plan({{1 * MiB, 10}, {0, 10}, {1 * MiB, 10}}, GiB);
  EXPECT_THAT(pieces(plan, MiB),
              ElementsAre(Extent{1 * MiB, 10}, Extent{0, 10}, Extent{1 * MiB, 10}));
}

TEST(FetchPlan, LengthZeroIsToTheEndOfTheFile) {
  EXPECT_THAT(pieces(FetchPlan({{0, 0}}, 10000), 8 * KiB),
              ElementsAre(Extent{0, 8192}, Extent{8192, 1808}));
  EXPECT_THAT(pieces(FetchPlan({{9000, 0}}, 10000), 8 * KiB), ElementsAre(Extent{9000, 1000}));
}

TEST(FetchPlan, WhatLiesOutsideTheFileIsCountedAndLeftOut) {
  constexpr Bytes most = std::numeric_limits<Bytes>::max();
  const FetchPlan plan({{10000, 1}, {-1, 5}, {5, -1}, {most, most}, {9999, most}}, 10000);
  EXPECT_EQ(plan.outside(), 4U);
  EXPECT_THAT(pieces(plan, 4 * KiB), ElementsAre(Extent{9999, 1}));
  EXPECT_THAT(pieces(FetchPlan({{0, 0}}, 0), 4 * KiB), IsEmpty());
  EXPECT_THAT(pieces(FetchPlan({}, 100), 4 * KiB), IsEmpty());
}

TEST(FetchPlan, GoesWhereTheReaderWent) {
  FetchPlan plan({{0, 100}, {MiB, 100}, {2 * MiB, 100}, {0, 50}}, GiB);
  const auto next = [&] { return plan.next({4 * KiB, std::nullopt})->hull(); };
  EXPECT_TRUE(plan.seek({2 * MiB + 40, 1}));
  EXPECT_EQ(next(), (Extent{2 * MiB + 40, 60}));
  EXPECT_FALSE(plan.seek({500, 1}));
  EXPECT_EQ(next(), (Extent{0, 50})) << "the next one from here, not the first";
  EXPECT_TRUE(plan.at_end());
  EXPECT_TRUE(plan.seek({MiB, 1})) << "also from the end";
  EXPECT_EQ(next(), (Extent{MiB, 100}));
  EXPECT_TRUE(plan.seek({2 * MiB - 30, 40})) << "where the read begins is not declared";
  EXPECT_EQ(next(), (Extent{2 * MiB, 100}));
  EXPECT_FALSE(FetchPlan().seek({0, 1}));
}

TEST(FetchPlan, EndsWhereAnotherReaderBegan) {
  const std::vector<Extent> extents = {{0, 100}, {MiB, 100}, {2 * MiB, 100}, {0, 50}};
  FetchPlan plan(extents, GiB);
  EXPECT_FALSE(plan.end_before(500));
  EXPECT_TRUE(plan.end_before(2 * MiB));
  EXPECT_THAT(pieces(plan, 4 * KiB), ElementsAre(Extent{0, 100}, Extent{MiB, 100}));
  EXPECT_EQ(plan.bytes(), 200);
  EXPECT_TRUE(plan.end_before(MiB + 30)) << "in the midst of an extent";
  EXPECT_THAT(pieces(plan, 4 * KiB), ElementsAre(Extent{0, 100}, Extent{MiB, 30}));
  EXPECT_TRUE(plan.declared().overlap({2 * MiB, 100}) == 100) << "it was declared all the same";

  FetchPlan whole(extents, GiB);
  whole.next({4 * KiB, std::nullopt});
  EXPECT_FALSE(whole.end_before(MiB)) << "there it is itself";
  EXPECT_TRUE(whole.end_before(0)) << "what it comes to, not what it has passed";
  EXPECT_THAT(pieces(whole, 4 * KiB), ElementsAre(Extent{MiB, 100}, Extent{2 * MiB, 100}));
}

TEST(FetchPlan, WhatIsInPiecesAlreadyStays) {
  FetchPlan plan({{0, 4 * KiB}, {MiB, 4 * KiB}, {8 * KiB, 4 * KiB}, {2 * MiB, 100}}, GiB);
  const auto piece = plan.next({64 * KiB, 4 * KiB});
  ASSERT_TRUE(piece.has_value());
  ASSERT_EQ(piece->parts().size(), 2U);
  ASSERT_TRUE(plan.end_before(MiB + 1));
  EXPECT_THAT(pieces(plan, 4 * KiB), ElementsAre(Extent{MiB, 4 * KiB}));
  EXPECT_GT(plan.beyond(), piece->end());
  FetchPlan again({{0, 100}, {MiB, 100}, {2 * MiB, 100}}, GiB);
  ASSERT_TRUE(again.seek({0, 1}));
  const ReadingPlace here = again.position();
  ASSERT_TRUE(again.end_before(2 * MiB));
  EXPECT_EQ(again.position(), here) << "places of what was given out stay";
}

RC_GTEST_PROP(FetchPlanProperty, PiecesHoldAllThatWasDeclaredAndFit, ()) {
  const Bytes size = *rc::gen::inRange<Bytes>(1, 40'000);
  const Bytes block = direct_alignment * *rc::gen::inRange<Bytes>(1, 5);
  const auto extents = *rc::gen::container<std::vector<Extent>>(rc::gen::construct<Extent>(
      rc::gen::inRange<Bytes>(0, 44'000), rc::gen::inRange<Bytes>(1, 6'000)));
  const FetchPlan plan(extents, size);
  std::set<Bytes> transferred;
  Bytes sum = 0;
  for (const Extent& piece : pieces(plan, block)) {
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

TEST(FetchPlan, WhatLiesNearIsFetchedByOneRequest) {
  const FetchPlan plan({{40 * KiB, 8 * KiB}, {4 * MiB, 1}, {60 * KiB, 10}, {24 * KiB, 8 * KiB}},
                       GiB);
  EXPECT_THAT(pieces(plan, {64 * KiB, 8 * KiB}),
              ElementsAre(Extent{24 * KiB, 24 * KiB}, Extent{4 * MiB, 1}, Extent{60 * KiB, 10}));
  EXPECT_THAT(pieces(plan, {64 * KiB, 12 * KiB}),
              ElementsAre(Extent{24 * KiB, 36 * KiB + 10}, Extent{4 * MiB, 1}));
  EXPECT_THAT(
      pieces(plan, {36 * KiB, 12 * KiB}),
      ElementsAre(Extent{40 * KiB, 20 * KiB + 10}, Extent{4 * MiB, 1}, Extent{24 * KiB, 8 * KiB}))
      << "no longer than a request may be";
}

TEST(FetchPlan, APieceKnowsItsPartsAndWhenTheyAreRead) {
  FetchPlan plan({{40 * KiB, 100}, {4 * MiB, 1}, {60 * KiB, 10}}, GiB);
  const auto piece = plan.next({64 * KiB, MiB / 4});
  ASSERT_TRUE(piece.has_value());
  EXPECT_EQ(piece->needed(), 110);
  EXPECT_THAT(piece->between(), ElementsAre(Extent{40 * KiB + 100, 20 * KiB - 100}));
  EXPECT_TRUE(piece->touches({60 * KiB + 9, 1}));
  EXPECT_FALSE(piece->touches({50 * KiB, 4 * KiB}));
  const auto after = plan.next({64 * KiB, MiB / 4});
  ASSERT_TRUE(after.has_value());
  EXPECT_LT(after->end(), piece->end()) << "a part of the first one is read after the second";
  EXPECT_TRUE(plan.at_end());
  EXPECT_LT(piece->end(), plan.beyond());
}

TEST(FetchPlan, WhatWasReadIsTakenOutOfAPiece) {
  FetchPlan plan({{0, 100}, {8 * KiB, 100}, {16 * KiB, 100}}, GiB);
  auto piece = plan.next({64 * KiB, 4 * KiB});
  ASSERT_TRUE(piece.has_value());
  EXPECT_THAT(piece->take_out({0, 8 * KiB + 40}), ElementsAre(Extent{0, 100}, Extent{8 * KiB, 40}));
  EXPECT_EQ(piece->hull(), (Extent{8 * KiB + 40, 8 * KiB + 60}));
  EXPECT_THAT(piece->take_out({16 * KiB + 50, 10}), ElementsAre(Extent{16 * KiB, 60}))
      << "what lies before it is passed";
  EXPECT_THAT(piece->take_out({0, MiB}),
              ElementsAre(Extent{8 * KiB + 40, 60}, Extent{16 * KiB + 60, 40}));
  EXPECT_TRUE(piece->empty());
}

TEST(FetchPlan, WhatLiesFarBeforeAReadStaysInAPiece) {
  FetchPlan plan({{0, 64 * KiB}}, GiB);
  auto piece = plan.next({64 * KiB, std::nullopt});
  ASSERT_TRUE(piece.has_value());
  EXPECT_THAT(piece->take_out({60 * KiB, 4 * KiB}), IsEmpty()) << "a table at the end, say";
  EXPECT_EQ(piece->needed(), 64 * KiB);
}

TEST(FetchPlan, TellsWhetherAReadLiesAhead) {
  FetchPlan plan({{0, 64 * KiB}, {MiB, 10}}, GiB);
  EXPECT_TRUE(plan.lies_ahead({0, 1}));
  static_cast<void>(plan.next({32 * KiB, std::nullopt}));
  EXPECT_FALSE(plan.lies_ahead({0, 32 * KiB})) << "it was cut";
  EXPECT_TRUE(plan.lies_ahead({32 * KiB, 1}));
  EXPECT_TRUE(plan.lies_ahead({MiB + 9, 10}));
  EXPECT_FALSE(plan.lies_ahead({2 * MiB, 10}));
}

RC_GTEST_PROP(FetchPlanProperty, JoinedPiecesHoldEachDeclaredByteOnce, ()) {
  const auto extents = *rc::gen::container<std::vector<Extent>>(rc::gen::construct<Extent>(
      rc::gen::inRange<Bytes>(0, 400'000), rc::gen::inRange<Bytes>(1, 20'000)));
  const RequestShape shape{direct_alignment * *rc::gen::inRange<Bytes>(1, 30),
                           *rc::gen::inRange<Bytes>(0, 50'000)};
  FetchPlan plan(extents, 420'000);
  const Bytes declared = plan.bytes();
  std::set<ReadingPlace> places;
  Bytes sum = 0;
  while (const auto piece = plan.next(shape)) {
    RC_ASSERT(transfer_of(piece->hull()).length <= shape.most);
    Bytes end = 0;
    for (const auto& [extent, place] : piece->parts()) {
      RC_ASSERT(extent.offset >= end);
      end = extent.end();
      RC_ASSERT(places.insert(place).second);
      sum += extent.length;
    }
    for (const Extent& gap : piece->between()) {
      RC_ASSERT(gap.length < *shape.gap + 2 * direct_alignment);
    }
  }
  RC_ASSERT(sum == declared);
}

}  // namespace
}  // namespace forebay
