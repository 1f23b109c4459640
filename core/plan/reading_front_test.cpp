// Goal: what a reader goes past is passed, and a read of an index that lies further on passes
// nothing.  Method: reads of a few places, by hand.

#include "core/plan/reading_front.hpp"

#include <gtest/gtest.h>

namespace forebay {
namespace {

int passed_after(ReadingFront<int>& front, int first, int end) {
  front.begin_read(first);
  front.read_to(end);
  return front.passed();
}

TEST(ReadingFront, GoesOnWithReadsThatFollowEachOther) {
  ReadingFront front(10);
  EXPECT_EQ(passed_after(front, 10, 20), 20);
  EXPECT_EQ(passed_after(front, 20, 30), 30);
  EXPECT_EQ(passed_after(front, 25, 35), 35);
  EXPECT_EQ(passed_after(front, 5, 8), 35) << "what was passed stays so";
}

TEST(ReadingFront, AReadFurtherOnPassesNothingIfTheNextIsBack) {
  ReadingFront front(0);
  passed_after(front, 0, 10);
  EXPECT_EQ(passed_after(front, 500, 503), 10);
  EXPECT_EQ(passed_after(front, 10, 20), 20);
  EXPECT_EQ(passed_after(front, 20, 30), 30);
}

TEST(ReadingFront, WhoReadsOnThereHasGoneThere) {
  ReadingFront front(0);
  passed_after(front, 0, 10);
  passed_after(front, 500, 510);
  EXPECT_EQ(passed_after(front, 510, 520), 520);
}

TEST(ReadingFront, OfAReaderThatSkipsTheLastReadIsNotPassedYet) {
  ReadingFront front(0);
  passed_after(front, 0, 10);
  EXPECT_EQ(passed_after(front, 100, 110), 10);
  EXPECT_EQ(passed_after(front, 200, 210), 110);
  front.begin_read(300);
  EXPECT_EQ(front.passed(), 210) << "before it is there";
}

}  // namespace
}  // namespace forebay
