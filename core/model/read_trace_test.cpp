// Goal: a trace holds what was read, in the order of reading, in as few extents as that takes.
// Method: short sequences of reads, one point each.

#include "core/model/read_trace.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace forebay {
namespace {

using ::testing::ElementsAre;

ReadTrace trace_of(const std::vector<Extent>& reads) {
  ReadTrace trace;
  for (const Extent& read : reads) trace.add(read);
  return trace;
}

TEST(ReadTrace, ReadsThatFollowEachOtherAreOneExtent) {
  const auto trace = trace_of({{0, 10}, {10, 5}, {20, 5}, {25, 1}});
  EXPECT_THAT(trace.extents(), ElementsAre(Extent{0, 15}, Extent{20, 6}));
  EXPECT_EQ(trace.reads(), 4);
  EXPECT_EQ(trace.bytes(), 21);
}

TEST(ReadTrace, TheOrderOfReadingStays) {
  EXPECT_THAT(trace_of({{100, 10}, {0, 10}, {100, 10}}).extents(),
              ElementsAre(Extent{100, 10}, Extent{0, 10}, Extent{100, 10}));
}

TEST(ReadTrace, BytesReadAgainAtOnceAreNoSecondExtent) {
  EXPECT_THAT(trace_of({{0, 100}, {10, 20}, {90, 20}, {0, 0}}).extents(),
              ElementsAre(Extent{0, 110}));
}

TEST(ReadTrace, WhatIsTooMuchIsCounted) {
  ReadTrace trace;
  for (std::size_t i = 0; i < ReadTrace::most_extents + 3; ++i) {
    trace.add({static_cast<Bytes>(2 * i), 1});
  }
  EXPECT_EQ(trace.extents().size(), ReadTrace::most_extents);
  EXPECT_EQ(trace.left_out(), 3);
  EXPECT_EQ(trace.reads(), static_cast<std::int64_t>(ReadTrace::most_extents) + 3);
}

}  // namespace
}  // namespace forebay
