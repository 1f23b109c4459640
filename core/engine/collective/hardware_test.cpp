// Goal: whether ranks share cores is told by the cores that they may use, not by those that their
// hosts have. Method: ranks placed by hand, and a thread that gives up all its cores but one.
#include "core/engine/collective/hardware.hpp"

#include <gtest/gtest.h>
#include <sched.h>

#include <initializer_list>
#include <thread>
#include <vector>

namespace forebay {
namespace {

CoreSet cores(std::initializer_list<std::size_t> numbers) {
  CoreSet set;
  for (const std::size_t core : numbers) set.words[core / 64] |= std::uint64_t{1} << core % 64;
  return set;
}

TEST(Hardware, ACoreForEachRankIsEnough) {
  // As launchers bind them.
  EXPECT_FALSE(cores_are_shared(std::vector<Place>{{1, cores({0})}, {1, cores({1})}}));
  EXPECT_FALSE(cores_are_shared(std::vector<Place>{{1, cores({63})}, {1, cores({64})}}));
  // Unbound.
  EXPECT_FALSE(cores_are_shared(std::vector<Place>{{1, cores({0, 1})}, {1, cores({0, 1})}}));
}

TEST(Hardware, MoreRanksThanCoresOfAllShareThem) {
  EXPECT_TRUE(cores_are_shared(std::vector<Place>{{1, cores({5})}, {1, cores({5})}}));
  EXPECT_TRUE(cores_are_shared(
      std::vector<Place>{{1, cores({0, 1023})}, {1, cores({1023})}, {1, cores({0})}}));
}

TEST(Hardware, HostsHaveCoresOfTheirOwn) {
  EXPECT_FALSE(cores_are_shared(std::vector<Place>{{1, cores({0})}, {2, cores({0})}}));
  EXPECT_TRUE(
      cores_are_shared(std::vector<Place>{{1, cores({0})}, {2, cores({0, 1})}, {1, cores({0})}}));
}

TEST(Hardware, CoresGivenUpAreNotCounted) {
  EXPECT_GE(usable_cores().count(), 1);
  std::jthread([] {
    cpu_set_t mask;
    ASSERT_EQ(::sched_getaffinity(0, sizeof mask, &mask), 0);
    int last = 0;
    for (int core = 0; core < CPU_SETSIZE; ++core) {
      if (CPU_ISSET(core, &mask)) last = core;
    }
    CPU_ZERO(&mask);
    CPU_SET(last, &mask);
    ASSERT_EQ(::sched_setaffinity(0, sizeof mask, &mask), 0);
    EXPECT_EQ(usable_cores().words, cores({static_cast<std::size_t>(last)}).words);
  }).join();
}

}  // namespace
}  // namespace forebay
