// Goal: declared extents are announced in their order, within a budget, and given up when they were
// passed; wrong declarations end soon.  Method: small files, worked through by hand.

#include "core/plan/extent_advice.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace forebay {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr Bytes unit = direct_alignment;

ReadAdvice::Item needed(Bytes first, Bytes units) { return {{first * unit, units * unit}, true}; }
ReadAdvice::Item dropped(Bytes first, Bytes units) { return {{first * unit, units * unit}, false}; }
ReadAdvice::Item skipped(Bytes first, Bytes units) {
  return {{first * unit, units * unit}, false, ReadAdvice::Kind::skipped};
}
ReadAdvice::Item joined(const std::vector<Extent>& declared) {
  const Extent whole = hull(declared.front(), declared.back());
  return {whole, true, ReadAdvice::Kind::read, declared};
}
Extent at(Bytes first, Bytes units) { return {first * unit, units * unit}; }

TEST(ExtentAdvice, BeginsWithWhatTheBudgetHolds) {
  ExtentAdvice advice({at(0, 2), at(10, 1), at(5, 3)}, 100 * unit, 4 * unit);
  EXPECT_THAT(advice.begin(), ElementsAre(needed(0, 1), needed(1, 1), needed(10, 1), needed(5, 1)));
  EXPECT_THAT(advice.expected(), SizeIs(4));
}

TEST(ExtentAdvice, WhatWasPassedMakesRoomAndWhatIsBeingReadStays) {
  ExtentAdvice advice({at(0, 8)}, 8 * unit, 4 * unit);
  advice.begin();
  EXPECT_THAT(advice.observe(at(0, 1)), IsEmpty()) << "it is only being read";
  EXPECT_THAT(advice.observe(at(1, 1)), ElementsAre(dropped(0, 1), needed(4, 1)));
  // A reader seen at one byte has passed what lies before.
  EXPECT_THAT(advice.glimpse({4 * unit + 5, 1}),
              ElementsAre(dropped(1, 1), needed(5, 1), dropped(2, 1), needed(6, 1), dropped(3, 1),
                          needed(7, 1)));
}

TEST(ExtentAdvice, OneThatWaitsOnlyGivesUp) {
  ExtentAdvice advice({at(0, 8)}, 8 * unit, 4 * unit);
  advice.begin();
  advice.keep_ahead(Ahead::nothing);
  EXPECT_THAT(advice.observe(at(0, 1)), IsEmpty()) << "it is only being read";
  EXPECT_THAT(advice.glimpse(at(2, 1)), ElementsAre(dropped(0, 1), dropped(1, 1)));
  advice.keep_ahead(Ahead::all);
  EXPECT_THAT(advice.observe(at(3, 1)),
              ElementsAre(needed(4, 1), needed(5, 1), dropped(2, 1), needed(6, 1)));
}

TEST(ExtentAdvice, OneThatWaitsAndIsSeenHereAndThereIsFollowed) {
  ExtentAdvice advice({at(0, 200)}, 200 * unit, 4 * unit);
  advice.begin();
  advice.observe(at(0, 4));
  advice.keep_ahead(Ahead::nothing);
  advice.observe(at(10, 1));
  for (Bytes place = 20; place < 180; place += 10) {
    EXPECT_THAT(advice.observe(at(place, 1)), Contains(dropped(place - 10, 1)));
  }
  EXPECT_FALSE(advice.is_given_up());
  advice.keep_ahead(Ahead::all);
  EXPECT_THAT(advice.go_on(), Contains(needed(171, 1))) << "though nothing was read since";
}

TEST(ExtentAdvice, WhatIsSkippedIsPassed) {
  ExtentAdvice advice({at(0, 4), at(10, 1), at(20, 1), at(30, 9)}, 100 * unit, 4 * unit);
  advice.begin();
  for (Bytes place = 30; place < 33; ++place) advice.observe(at(place, 1));
  EXPECT_THAT(advice.observe(at(33, 1)), AllOf(Contains(skipped(10, 1)), Contains(skipped(20, 1))));
}

TEST(ExtentAdvice, WhatIsReadBackwardsIsForeseen) {
  ExtentAdvice advice({at(0, 4), at(10, 1)}, 100 * unit, 16 * unit);
  advice.keep_ahead(Ahead::nothing);
  for (Bytes place = 3; place >= 0; --place) advice.observe(at(place, 1));
  EXPECT_FALSE(advice.is_given_up());
  EXPECT_FALSE(advice.is_done());
}

TEST(ExtentAdvice, InCompanyItHoldsHalf) {
  ExtentAdvice advice({at(0, 8)}, 8 * unit, 4 * unit);
  advice.begin();
  advice.keep_ahead(Ahead::half);
  EXPECT_THAT(advice.glimpse(at(2, 1)), ElementsAre(dropped(0, 1), dropped(1, 1)))
      << "one is being read, and one ahead";
  EXPECT_THAT(advice.observe(at(3, 1)), ElementsAre(dropped(2, 1), needed(4, 1)));
}

TEST(ExtentAdvice, InCompanyASmallBudgetHoldsTheNextPieceStill) {
  ExtentAdvice advice({at(0, 8)}, 8 * unit, 2 * unit);
  advice.begin();
  advice.keep_ahead(Ahead::half);
  EXPECT_THAT(advice.glimpse(at(1, 1)), ElementsAre(dropped(0, 1), needed(2, 1)));
}

TEST(ExtentAdvice, AnIndexThatIsReadInBetweenPassesNothing) {
  // Declared, or between neighbours that are brought as one.
  for (const auto& willneed :
       {std::vector{at(0, 20)}, std::vector{at(0, 6), Extent{6 * unit + 100, 14 * unit - 100}}}) {
    ExtentAdvice advice(willneed, 20 * unit, 8 * unit);
    advice.begin();
    advice.observe(at(0, 1));
    EXPECT_THAT(advice.observe({6 * unit + 50, 20}), IsEmpty());
    EXPECT_THAT(advice.observe(at(1, 1)), IsEmpty());
    EXPECT_THAT(advice.observe(at(2, 1)), ElementsAre(dropped(0, 2), needed(8, 2)));
    EXPECT_THAT(advice.expected(), Contains(at(6, 2)));
  }
}

TEST(ExtentAdvice, WhoReadsOnFurtherOnHasPassedWhatLiesBefore) {
  ExtentAdvice advice({at(0, 20)}, 20 * unit, 8 * unit);
  advice.begin();
  advice.observe(at(0, 2));
  EXPECT_THAT(advice.observe(at(7, 1)), ElementsAre(dropped(0, 2), needed(8, 2)));
  EXPECT_THAT(advice.observe(at(8, 1)), AllOf(Contains(dropped(2, 2)), Contains(dropped(4, 2))));
}

TEST(ExtentAdvice, WhatIsReadOfTheEndIsDone) {
  ExtentAdvice advice({at(0, 20)}, 20 * unit, 8 * unit);
  advice.begin();
  for (Bytes place = 0; place < 14; ++place) advice.observe(at(place, 1));
  advice.observe(at(19, 1));
  EXPECT_TRUE(advice.is_done()) << "though what lies before was skipped";
}

TEST(ExtentAdvice, WhoBeginsFurtherOnIsKeptAheadOf) {
  // The first extents hold all of the budget.
  ExtentAdvice advice({at(0, 4), at(50, 4), at(100, 2), at(200, 2), at(300, 2)}, 8 * MiB, 8 * unit);
  advice.begin();
  advice.observe(at(100, 2));
  EXPECT_THAT(advice.observe(at(200, 2)), Contains(needed(300, 2)));
}

TEST(ExtentAdvice, AReaderThatIsFasterIsNotFollowedIntoThePast) {
  ExtentAdvice advice({at(0, 12)}, 12 * unit, 4 * unit);
  advice.begin();
  EXPECT_THAT(advice.observe(at(0, 8)), IsEmpty());
  EXPECT_THAT(advice.observe(at(8, 1)),
              ElementsAre(dropped(4, 1), dropped(5, 1), dropped(6, 1), dropped(7, 1), dropped(0, 1),
                          needed(9, 1), dropped(1, 1), needed(10, 1), dropped(2, 1), needed(11, 1)))
      << "what it has read by itself is passed, too";
}

TEST(ExtentAdvice, AReaderThatIsFasterPassesBytesThatNobodyReads) {
  // Extents that share a unit are one, with what lies between them.
  ExtentAdvice advice({at(0, 4), {4 * unit, 10}, {4 * unit + 20, 10}, at(9, 1)}, 12 * unit,
                      4 * unit);
  advice.begin();
  advice.keep_ahead(Ahead::nothing);
  for (const Extent read : {at(0, 4), Extent{4 * unit, 10}, Extent{4 * unit + 20, 10}, at(9, 1)}) {
    EXPECT_FALSE(advice.is_done());
    advice.observe(read);
  }
  EXPECT_TRUE(advice.is_done());
}

TEST(ExtentAdvice, IsDoneWhenAllWasToldAndRead) {
  ExtentAdvice advice({at(0, 8)}, 8 * unit, 4 * unit);
  EXPECT_FALSE(advice.is_done()) << "it has not begun";
  advice.begin();
  advice.observe(at(0, 4));
  EXPECT_THAT(advice.expected(), IsEmpty());
  EXPECT_FALSE(advice.is_done()) << "what is being read leaves no room for the rest";
  advice.observe(at(4, 4));
  EXPECT_TRUE(advice.is_done());
}

TEST(ExtentAdvice, TheEndGivesUpAllThatIsHeld) {
  ExtentAdvice advice({at(0, 8)}, 8 * unit, 4 * unit);
  advice.begin();
  advice.observe(at(0, 1));
  EXPECT_THAT(advice.end(),
              ElementsAre(dropped(0, 1), dropped(1, 1), dropped(2, 1), dropped(3, 1)));
  EXPECT_THAT(advice.observe(at(1, 1)), IsEmpty());
}

TEST(ExtentAdvice, AGapIsToldAlongAndGivenUpAlong) {
  ExtentAdvice advice({at(0, 1), at(50, 1), at(2, 1), at(80, 8)}, 100 * unit, 24 * unit, unit);
  EXPECT_THAT(advice.begin(), ElementsAre(joined({at(0, 1), at(2, 1)}), needed(50, 1),
                                          needed(80, 6), needed(86, 2)));
  EXPECT_THAT(advice.expected(), ElementsAre(at(0, 1), at(50, 1), at(2, 1), at(80, 6), at(86, 2)))
      << "in the order of reading";
  advice.observe(at(0, 1));
  advice.observe(at(50, 1));
  EXPECT_THAT(advice.expected().front(), at(0, 1)) << "of its piece a part is read later";
  advice.observe(at(2, 1));
  EXPECT_THAT(advice.expected().front(), at(80, 6));
  EXPECT_THAT(advice.end(), ::testing::IsSupersetOf(
                                {dropped(0, 1), dropped(2, 1),
                                 ReadAdvice::Item{at(1, 1), false, ReadAdvice::Kind::between}}));
}

TEST(ExtentAdvice, AGapThatAnotherHasMeasuredIsTakenUnlessTheUserSaidOne) {
  const std::vector<Extent> pieces = {at(0, 1), at(50, 1), at(60, 1), at(62, 1)};
  ExtentAdvice free(pieces, 100 * unit, 24 * unit);
  free.take_gap(unit);
  EXPECT_EQ(free.gap(), unit);
  EXPECT_THAT(free.begin(),
              ElementsAre(needed(0, 1), needed(50, 1), joined({at(60, 1), at(62, 1)})));
  free.take_gap(std::nullopt);
  EXPECT_EQ(free.gap(), std::nullopt);
  ExtentAdvice ordered(pieces, 100 * unit, 24 * unit, Bytes{0});
  ordered.take_gap(unit);
  EXPECT_THAT(ordered.begin(), SizeIs(4));
}

/// The gap that is taken by the end of a reader that waits 10 ms for each request. `already`: of
/// the first requests, how many were in the page cache.
std::optional<Bytes> gap_taken(int already, bool misses_are_told) {
  std::vector<Extent> pieces;
  pieces.reserve(2000);
  for (Bytes i = 0; i < 2000; ++i) pieces.push_back(at(2 * i, 1));
  ExtentAdvice advice(pieces, 4000 * unit, 64 * unit);
  std::int64_t now_ns = 0;
  int requests = 0;
  const auto answer = [&](const std::vector<ReadAdvice::Item>& items) {
    for (const auto& item : items) {
      if (!item.is_needed) continue;
      now_ns += 10'000'000;
      const bool was_there = ++requests <= already;
      if (was_there || misses_are_told) advice.was_there(was_there);
    }
  };
  answer(advice.begin());
  for (const Extent& piece : pieces) {
    advice.tell_time(now_ns);
    answer(advice.observe(piece));
    if (advice.gap()) return advice.gap();
  }
  return std::nullopt;
}

TEST(ExtentAdvice, NothingIsJoinedWhileWhatIsAskedForIsThereAlready) {
  EXPECT_NE(gap_taken(0, true), std::nullopt);
  EXPECT_EQ(gap_taken(2000, true), std::nullopt);
  EXPECT_EQ(gap_taken(8, false), std::nullopt);
  EXPECT_NE(gap_taken(8, true), std::nullopt) << "only at first";
  EXPECT_NE(gap_taken(100, true), std::nullopt);
}

TEST(ExtentAdvice, WrongReadsEndIt) {
  ExtentAdvice advice({at(0, 8)}, 1000 * unit, 4 * unit);
  advice.begin();
  advice.observe(at(0, 1));
  for (Bytes place = 100; !advice.is_given_up(); ++place) {
    ASSERT_LT(place, 120);
    advice.observe(at(place, 1));
  }
  EXPECT_THAT(advice.expected(), IsEmpty());
}

TEST(ExtentAdvice, RightExtentsInAWrongOrderEndIt) {
  constexpr Bytes extents = 400, units = 8;
  constexpr Bytes budget = 16 * units * unit;
  std::vector<Extent> shuffled;
  shuffled.reserve(extents);
  for (Bytes i = 0; i < extents; ++i) shuffled.push_back(at(i * units, units));
  std::mt19937 random(1);  // NOLINT(bugprone-random-generator-seed): repeatable
  std::ranges::shuffle(shuffled, random);
  ExtentAdvice advice(shuffled, extents * units * unit, budget);
  Bytes told = 0;
  const auto count = [&](const std::vector<ReadAdvice::Item>& items) {
    for (const auto& item : items) told += item.is_needed ? item.extent.length : 0;
  };
  count(advice.begin());
  for (Bytes i = 0; i < extents * units && !advice.is_given_up(); ++i)
    count(advice.observe(at(i, 1)));
  EXPECT_TRUE(advice.is_given_up());
  EXPECT_LE(told, 5 * budget);
}

TEST(ExtentAdvice, AReaderThatJumpsIsFoundAgain) {
  ExtentAdvice advice({at(0, 100)}, 100 * unit, 4 * unit);
  advice.begin();
  advice.observe(at(0, 1));
  for (Bytes place = 50; place < 53; ++place) advice.observe(at(place, 1));
  EXPECT_THAT(advice.expected().back(), at(56, 1)) << "from where it was found";
}

}  // namespace
}  // namespace forebay
