// Goal: readers of equal speed go together, and no reader holds the others up for long, whether it
// is stopped, slow or late. Method: what each rule says of readers and pieces, by hand.

#include "core/plan/shared_reading.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

namespace forebay {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr std::int64_t ms = 1'000'000;
constexpr Bytes window = 8 * MiB;

TEST(SharedReading, WhatAllHavePassedMakesRoomInItsOrder) {
  const std::array held{HeldPiece{30, 40, true}, HeldPiece{10, 20, true}, HeldPiece{0, 10, false},
                        HeldPiece{20, 30, true}};
  EXPECT_EQ(piece_to_give_up(held, 30, 40), 1U) << "the first is still on its way";
  EXPECT_EQ(piece_to_give_up(held, 19, 40), std::nullopt) << "somebody is in the midst of it";
}

TEST(SharedReading, ForOneWhoCameLateTheFurthestMakesRoom) {
  const std::array held{HeldPiece{30, 40, true}, HeldPiece{50, 60, true}, HeldPiece{60, 70, false}};
  EXPECT_EQ(piece_to_give_up(held, 0, 10), 1U);
  EXPECT_EQ(piece_to_give_up(held, 0, 50), std::nullopt);
}

TEST(SharedReading, WhoIsNearJoins) {
  EXPECT_TRUE(may_join(0, {}, 0, 0, window));
  const std::array fellows{Fellow{window, 0}, Fellow{window / 2, 0}};
  const auto joins = [&](Bytes place) {
    return may_join(place, fellows, window, 9000 * ms, window);
  };
  EXPECT_TRUE(joins(0));
  EXPECT_TRUE(joins(window + window / 2));
  EXPECT_FALSE(joins(2 * window)) << "too far in front";
}

TEST(SharedReading, WhoIsFurtherBehindJoinsIfTheOthersCanWaitForIt) {
  // At 100 MB/s, what is read in 200 ms and a tenth of the time.
  const auto joins = [](Bytes behind, std::int64_t reading_ns) {
    return may_join(0, std::array{Fellow{behind, 0}}, behind, reading_ns, window);
  };
  EXPECT_TRUE(joins(20'000'000, 200 * ms));
  EXPECT_FALSE(joins(30'000'000, 300 * ms));
  EXPECT_FALSE(joins(9 * window, ms)) << "whatever their speed";
}

TEST(SharedReading, WhoBeginsFarInFrontReadsAnotherPart) {
  EXPECT_FALSE(may_join(20'000'000, std::array{Fellow{0, 0}}, 0, ms, window));
  EXPECT_TRUE(may_join(20'000'000, std::array{Fellow{0, 0}}, 20'000'000, 200 * ms, window));
}

TEST(SharedReading, WhoWasNotAskedIsNotSilent) {
  EXPECT_FALSE(is_silent(0, 0, 1000 * ms));
  EXPECT_FALSE(is_silent(100 * ms, 150 * ms, 1000 * ms));
  EXPECT_FALSE(is_silent(100 * ms, 50 * ms, 200 * ms));
  EXPECT_TRUE(is_silent(100 * ms, 50 * ms, 500 * ms));
}

TEST(LaggardPatience, OneThatIsStoppedIsGivenUpAfterATenthOfASecond) {
  LaggardPatience patience;
  const auto at = [&](std::int64_t now_ns, Bytes front, std::int64_t moved_ns) {
    const std::array others{Fellow{window, now_ns}, Fellow{front, moved_ns}};
    return patience.given_up({others, window, 10'000 * ms, now_ns, window});
  };
  EXPECT_THAT(at(5000 * ms, 0, 1000 * ms), IsEmpty()) << "it was not waited for before";
  EXPECT_THAT(at(5090 * ms, 0, 1000 * ms), IsEmpty());
  EXPECT_THAT(at(5110 * ms, 0, 5050 * ms), IsEmpty()) << "it reads";
  EXPECT_THAT(at(5160 * ms, 0, 5050 * ms), ElementsAre(1U));
}

TEST(LaggardPatience, OneThatIsSlowIsGivenUpWhenItHasCostTooMuch) {
  LaggardPatience patience;
  std::int64_t now_ns = 0;
  const auto waits = [&](std::int64_t for_ns) {
    std::vector<std::size_t> result;
    for (const std::int64_t end_ns = now_ns + for_ns; now_ns <= end_ns; now_ns += 10 * ms) {
      const std::array others{Fellow{0, now_ns}};
      result = patience.given_up({others, window, now_ns, now_ns, window});
      if (!result.empty()) break;
    }
    patience.over(now_ns);
    now_ns += 90 * ms;  // It reads.
    return result;
  };
  // Of each 100 ms one waits 10, which it may for ever.
  for (int i = 0; i < 100; ++i) ASSERT_THAT(waits(0), IsEmpty()) << i;
  EXPECT_THAT(waits(200 * ms), IsEmpty());
  EXPECT_THAT(waits(300 * ms), ElementsAre(0U));
}

TEST(LaggardPatience, WhoIsNearHoldsNobodyUp) {
  LaggardPatience patience;
  const std::array others{Fellow{window / 2, 0}};
  const auto given_up = [&](std::int64_t now_ns, Bytes awaited) {
    return patience.given_up({others, window, now_ns, now_ns, window, awaited});
  };
  EXPECT_THAT(given_up(0, 0), IsEmpty());
  EXPECT_THAT(given_up(60'000 * ms, window / 2), IsEmpty());
  EXPECT_THAT(given_up(60'000 * ms, window / 2 + 1), ElementsAre(0U)) << "little is left of it";
}

}  // namespace
}  // namespace forebay
