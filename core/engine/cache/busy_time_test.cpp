#include "core/engine/cache/busy_time.hpp"

#include <gtest/gtest.h>

namespace forebay {
namespace {

TEST(BusyTime, CountsThoseWhoWorkAtTheSameTimeOnce) {
  const BusyTime::Clock::time_point start;
  const auto at = [&](int ns) { return start + std::chrono::nanoseconds(ns); };
  BusyTime busy;
  busy.begin(at(10));
  busy.begin(at(15));
  busy.end(at(30));
  EXPECT_EQ(busy.nanoseconds(), 0) << "one still works";
  busy.end(at(40));
  EXPECT_EQ(busy.nanoseconds(), 30);
  busy.begin(at(100));
  busy.end(at(105));
  EXPECT_EQ(busy.nanoseconds(), 35);
}

}  // namespace
}  // namespace forebay
