// Goal: reads that follow each other, or a step, are foreseen; others are not.
// Method: short series of reads.

#include "core/plan/access_pattern.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace forebay {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr Bytes size = 1000;

AccessPattern after(const std::vector<Extent>& reads) {
  AccessPattern pattern;
  for (const Extent& read : reads) pattern.observe(read);
  return pattern;
}

TEST(AccessPattern, SequentialReadsGoOnToTheEnd) {
  // Lengths may differ: what counts is that no byte is left out.
  EXPECT_THAT(after({{0, 10}, {10, 20}, {30, 5}, {35, 15}}).expected(size, 8),
              ElementsAre(Extent{50, 950}));
}

TEST(AccessPattern, StridedReadsGoOnByTheirStep) {
  EXPECT_THAT(after({{0, 10}, {100, 10}, {200, 10}, {300, 10}}).expected(size, 3),
              ElementsAre(Extent{400, 10}, Extent{500, 10}, Extent{600, 10}));
  EXPECT_THAT(after({{70, 10}, {50, 10}, {30, 10}, {10, 10}}).expected(size, 8), IsEmpty())
      << "backwards, and at the beginning of the file";
  EXPECT_THAT(after({{95, 10}, {65, 10}, {35, 10}, {5, 10}}).expected(size, 8), IsEmpty());
  EXPECT_THAT(after({{95, 10}, {75, 10}, {55, 10}, {35, 10}}).expected(size, 8),
              ElementsAre(Extent{15, 10}));
  EXPECT_THAT(after({{395, 10}, {595, 10}, {795, 10}, {995, 10}}).expected(size, 8), IsEmpty());
  EXPECT_THAT(after({{250, 100}, {450, 100}, {650, 100}, {850, 100}}).expected(960, 8), IsEmpty());
  EXPECT_THAT(after({{150, 100}, {350, 100}, {550, 100}, {750, 100}}).expected(960, 8),
              ElementsAre(Extent{950, 10}))
      << "cut where the file ends";
}

TEST(AccessPattern, TooFewOrDisorderedReadsAreNoPattern) {
  EXPECT_THAT(AccessPattern().expected(size, 8), IsEmpty());
  EXPECT_THAT(after({{0, 10}, {10, 10}, {20, 10}}).expected(size, 8), IsEmpty());
  EXPECT_THAT(after({{0, 10}, {300, 10}, {50, 10}, {700, 10}, {20, 10}}).expected(size, 8),
              IsEmpty());
  EXPECT_THAT(after({{5, 10}, {5, 10}, {5, 10}, {5, 10}, {5, 10}}).expected(size, 8), IsEmpty())
      << "the same place again and again";
}

TEST(AccessPattern, EachDisappointmentAsksForTwiceTheSteps) {
  AccessPattern pattern = after({{0, 10}, {10, 10}, {20, 10}, {30, 10}});
  ASSERT_FALSE(pattern.expected(size, 8).empty());
  pattern.disappoint();
  for (Bytes at = 500; at < 560; at += 10) pattern.observe({at, 10});
  EXPECT_THAT(pattern.expected(size, 8), IsEmpty()) << "five steps";
  pattern.observe({560, 10});
  EXPECT_THAT(pattern.expected(size, 8), ElementsAre(Extent{570, 430}));
}

}  // namespace
}  // namespace forebay
