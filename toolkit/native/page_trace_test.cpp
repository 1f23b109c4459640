// Goal: what a process read, from what the kernel tells of its pages.  Method: events by hand, of a
// process that does not exist, so that each thread stands for itself.

#include "toolkit/native/page_trace.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace forebay {
namespace {

using ::testing::ElementsAre;
using Kind = PageEvent::Kind;

constexpr Bytes page = 4096;
constexpr pid_t nobody = 1 << 30;  // Beyond any number of the kernel's.

PageEvent event(Kind kind, Bytes first, Bytes pages, pid_t thread = nobody) {
  return {kind, {1, 2}, {first * page, pages * page}, thread};
}

TEST(PageTrace, ReadsThatGoOnAreOneExtent) {
  PageTrace trace;
  trace.add(event(Kind::read, 10, 40));
  trace.add(event(Kind::read, 25, 25));  // The kernel goes on with what it did not get at once.
  trace.add(event(Kind::read, 3, 1));
  ASSERT_EQ(trace.traces().size(), 1U);
  EXPECT_THAT(trace.traces().begin()->second.extents(),
              ElementsAre(Extent{10 * page, 40 * page}, Extent{3 * page, page}));
}

TEST(PageTrace, AReadBeginsWithThePagesThatWereAddedForIt) {
  PageTrace trace;
  trace.add(event(Kind::added, 10, 4));
  trace.add(event(Kind::added, 14, 8));
  trace.add(event(Kind::read, 14, 3));  // Of the first four the kernel has told nothing.
  trace.add(event(Kind::read, 40, 2));  // Nothing was added for it.
  trace.add(event(Kind::added, 50, 4));
  trace.add(event(Kind::added, 60, 4));
  trace.add(event(Kind::read, 60, 4));
  trace.add(event(Kind::added, 70, 4));
  trace.add(event(Kind::read, 90, 1));
  EXPECT_THAT(trace.traces().begin()->second.extents(),
              ElementsAre(Extent{10 * page, 7 * page}, Extent{40 * page, 2 * page},
                          Extent{60 * page, 4 * page}, Extent{90 * page, page}));
}

TEST(PageTrace, WhatWasAddedForSomethingElseWasNotRead) {
  PageTrace trace;
  trace.add(event(Kind::added, 0, 256));  // By advice.
  trace.add(event(Kind::read, 100, 1));
  trace.add(event(Kind::added, 300, 4));
  trace.add(event(Kind::fault, 300, 1));
  trace.add(event(Kind::read, 302, 1));
  EXPECT_THAT(
      trace.traces().begin()->second.extents(),
      ElementsAre(Extent{100 * page, page}, Extent{300 * page, page}, Extent{302 * page, page}));
}

TEST(PageTrace, ThreadsReadForTheirProcess) {
  PageTrace trace;
  const auto makes = [&](pid_t thread, pid_t made, bool is_of_process) {
    trace.add({.kind = Kind::began,
               .file = {},
               .extent = {},
               .thread = thread,
               .made = made,
               .is_of_process = is_of_process});
  };
  constexpr pid_t second = nobody + 1, third = nobody + 2;
  makes(nobody, second, true);
  makes(second, third, true);
  trace.add(event(Kind::read, 10, 1, third));
  trace.add(event(Kind::read, 11, 1, nobody));
  ASSERT_EQ(trace.traces().size(), 1U);
  EXPECT_THAT(trace.traces().begin()->second.extents(), ElementsAre(Extent{10 * page, 2 * page}));
  makes(second, third, false);  // The number is used again.
  trace.add(event(Kind::read, 12, 1, third));
  EXPECT_EQ(trace.traces().size(), 2U);
}

TEST(PageTrace, WhatIsOnlyAddedWasNotRead) {
  PageTrace trace;
  trace.add(event(Kind::added, 10, 4));
  EXPECT_TRUE(trace.traces().empty());
}

TEST(PageTrace, WhatIsEnteredAroundAPageBeginsWithTheFaultBefore) {
  PageTrace trace;
  trace.add(event(Kind::fault, 20, 1));
  trace.add(event(Kind::around, 16, 16));
  trace.add(event(Kind::around, 64, 16));
  EXPECT_THAT(trace.traces().begin()->second.extents(),
              ElementsAre(Extent{20 * page, 12 * page}, Extent{64 * page, 16 * page}));
}

TEST(PageTrace, ProcessesAreKeptApart) {
  PageTrace trace;
  trace.add(event(Kind::read, 0, 1));
  trace.add(event(Kind::read, 0, 1, nobody + 1));
  EXPECT_EQ(trace.traces().size(), 2U);
}

}  // namespace
}  // namespace forebay
