// Goal: what a reader goes past is passed, and a read of an index that lies further on passes
// nothing.  Method: reads of a few places, by hand.

#include "core/plan/reading_front.hpp"

#include <gtest/gtest.h>

namespace forebay {
namespace {

Bytes passed_after(ReadingFront<Bytes>& front, Bytes first, Bytes end) {
  front.read_to(end, front.begin_read(first));
  return front.passed();
}

TEST(ReadingFront, GoesOnWithReadsThatFollowEachOther) {
  ReadingFront front(10 * KiB);
  EXPECT_EQ(passed_after(front, 10 * KiB, 20 * KiB), 20 * KiB);
  EXPECT_EQ(passed_after(front, 20 * KiB, 30 * KiB), 30 * KiB);
  EXPECT_EQ(passed_after(front, 25 * KiB, 35 * KiB), 35 * KiB);
  EXPECT_EQ(passed_after(front, 35 * KiB + most_passed_over, MiB), MiB);
  EXPECT_EQ(passed_after(front, 5 * KiB, 8 * KiB), MiB) << "what was passed stays so";
  EXPECT_EQ(front.furthest(), MiB);
}

TEST(ReadingFront, AReadFurtherOnPassesNothingIfTheNextIsBack) {
  ReadingFront front(Bytes{0});
  for (Bytes at = 0; at < MiB; at += 64 * KiB) {
    EXPECT_EQ(passed_after(front, at, at + 32 * KiB), at + 32 * KiB);
    EXPECT_EQ(passed_after(front, 2 * MiB, 2 * MiB + 500), at + 32 * KiB);
    EXPECT_EQ(front.furthest(), 2 * MiB + 500);
    EXPECT_EQ(passed_after(front, at + 32 * KiB, at + 64 * KiB), at + 64 * KiB);
  }
}

TEST(ReadingFront, WhoReadsOnThereHasGoneThere) {
  ReadingFront front(Bytes{0});
  passed_after(front, 0, 10);
  passed_after(front, MiB, MiB + 10);
  EXPECT_EQ(passed_after(front, MiB + 10, MiB + 20), MiB + 20);
}

TEST(ReadingFront, WhoSkipsAgainAndAgainIsBelieved) {
  ReadingFront front(Bytes{0});
  passed_after(front, 0, 10);
  EXPECT_EQ(passed_after(front, MiB, MiB + 10), 10);
  EXPECT_EQ(passed_after(front, 2 * MiB, 2 * MiB + 10), 2 * MiB + 10);
  EXPECT_EQ(passed_after(front, 3 * MiB, 3 * MiB + 10), 3 * MiB + 10);
  EXPECT_EQ(passed_after(front, MiB, MiB + 10), 3 * MiB + 10);
  EXPECT_EQ(passed_after(front, 4 * MiB, 4 * MiB + 10), 4 * MiB + 10) << "it read that once more";
}

TEST(ReadingFront, WhoReadsTheBeginningAgainAndAgainGoesOn) {
  ReadingFront front(Bytes{0});
  passed_after(front, 0, 512);
  for (Bytes at = 64 * KiB; at < 4 * MiB; at += 64 * KiB) {
    passed_after(front, at, at + 64 * KiB);
    EXPECT_GE(passed_after(front, 0, 512), at == 64 * KiB ? 512 : at + 64 * KiB);
  }
}

TEST(ReadingFront, AnExtentFurtherOnIsASkip) {
  ReadingFront front(ReadingPlace{0, 0});
  front.read_to({0, 100}, front.begin_read({0, 50}));
  EXPECT_EQ(front.passed(), (ReadingPlace{0, 100}));
  EXPECT_TRUE(front.begin_read({1, 0}));
  EXPECT_FALSE(front.begin_read({2, 0}));
  EXPECT_EQ(front.passed(), (ReadingPlace{0, 100}));
}

}  // namespace
}  // namespace forebay
