// Goal: no range that was unmapped is lost, whenever its call comes. Method: more than there is
// room for, and threads that add while another one takes.

#include "core/intercept/posix/missed_ranges.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <set>
#include <thread>
#include <utility>
#include <vector>

namespace forebay::posix {
namespace {

using Taken = std::vector<std::pair<std::uintptr_t, std::uintptr_t>>;

Taken take(MissedRanges& missed) {
  Taken taken;
  missed.take([&](std::uintptr_t begin, std::uintptr_t end) { taken.emplace_back(begin, end); });
  return taken;
}

TEST(MissedRanges, AreTakenOnce) {
  MissedRanges missed;
  EXPECT_EQ(take(missed), Taken());
  missed.add(1, 2);
  missed.add(10, 20);
  EXPECT_EQ(take(missed), (Taken{{1, 2}, {10, 20}}));
  EXPECT_EQ(take(missed), Taken());
}

TEST(MissedRanges, WhereThereIsNoRoomForMoreAllIsTaken) {
  MissedRanges missed;
  for (std::uintptr_t i = 0; i <= MissedRanges::most; ++i) missed.add(10 + i, 11 + i);
  const Taken taken = take(missed);
  ASSERT_EQ(taken.size(), MissedRanges::most + 1);
  EXPECT_EQ(taken.front().first, 0U);
  EXPECT_EQ(taken.front().second, std::numeric_limits<std::uintptr_t>::max());
  missed.add(1, 2);
  EXPECT_EQ(take(missed), (Taken{{1, 2}}));
}

TEST(MissedRanges, OfSeveralThreadsNoneIsLost) {
  constexpr std::uintptr_t each = 2000;
  MissedRanges missed;
  std::vector<std::thread> threads;
  for (std::uintptr_t thread = 0; thread < 3; ++thread) {
    threads.emplace_back([&missed, thread] {
      for (std::uintptr_t i = 0; i < each; ++i) missed.add(3 * i + thread + 1, 0);
    });
  }
  std::set<std::uintptr_t> found;
  bool is_all = false;
  const auto look = [&] {
    missed.take([&](std::uintptr_t begin, std::uintptr_t) {
      is_all |= begin == 0;
      found.insert(begin);
    });
  };
  for (int i = 0; i < 1000; ++i) look();
  for (std::thread& thread : threads) thread.join();
  look();
  EXPECT_TRUE(is_all || found.size() == 3 * each) << found.size();
}

}  // namespace
}  // namespace forebay::posix
