// Goal: actions run in the order of their deadlines, never before them, and none is lost.
// Method: real clock, deadlines a few milliseconds ahead; only order and "not before" are asserted,
// never "not later".

#include "testbed/reply_timer.hpp"

#include <gtest/gtest.h>

#include <future>
#include <latch>
#include <vector>

namespace forebay::testbed {
namespace {

using namespace std::chrono_literals;

TEST(ReplyTimer, RunsActionsInTheOrderOfTheirDeadlines) {
  std::vector<int> order;  // written by the timer's thread alone, read after the latch
  std::latch done(4);
  ReplyTimer timer;
  const Time start = ReplyTimer::now();
  const auto note = [&](int which) {
    return [&, which] {
      order.push_back(which);
      done.count_down();
    };
  };
  timer.at(start + 40ms, note(4));
  timer.at(start + 20ms, note(2));
  timer.at(start + 20ms, note(3));
  timer.at(start + 10ms, note(1));
  done.wait();
  EXPECT_EQ(order, (std::vector<int>{1, 2, 3, 4}));
}

TEST(ReplyTimer, NeverRunsAnActionBeforeItsDeadline) {
  constexpr int count = 200;
  std::latch done(count);
  std::atomic<int> early{0};
  ReplyTimer timer;
  const Time start = ReplyTimer::now();
  for (int i = 0; i < count; ++i) {
    const Time due = start + ((i * 37) % count) * 100us;
    timer.at(due, [&, due] {
      if (ReplyTimer::now() < due) ++early;
      done.count_down();
    });
  }
  done.wait();
  EXPECT_EQ(early, 0);
}

TEST(ReplyTimer, LetsAnActionScheduleAnother) {
  std::promise<int> result;
  ReplyTimer timer;
  timer.at(0s, [&] { timer.at(ReplyTimer::now() + 1ms, [&] { result.set_value(7); }); });
  EXPECT_EQ(result.get_future().get(), 7);
}

TEST(ReplyTimer, PerformsWhatIsLeftWhenItEnds) {
  int performed = 0;
  {
    ReplyTimer timer;
    for (int i = 0; i < 10; ++i) timer.at(ReplyTimer::now() + 1h, [&] { ++performed; });
  }
  EXPECT_EQ(performed, 10);
}

}  // namespace
}  // namespace forebay::testbed
