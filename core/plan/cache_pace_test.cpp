#include "core/plan/cache_pace.hpp"

#include <gtest/gtest.h>

namespace forebay {
namespace {

constexpr std::int64_t ms = 1'000'000;

TEST(CachePace, ALogThatIsSlowerThanItsFileIsTold) {
  EXPECT_TRUE(log_is_slower({16 * MiB, 1000 * ms, 30 * MiB, 1000 * ms}));
  EXPECT_TRUE(log_is_slower({16 * MiB, 1000 * ms, 21 * MiB, 1000 * ms}));
}

TEST(CachePace, ALogThatIsAsFastIsNot) {
  EXPECT_FALSE(log_is_slower({16 * MiB, 1000 * ms, 4 * MiB, 1000 * ms}));
  EXPECT_FALSE(log_is_slower({16 * MiB, 1000 * ms, 19 * MiB, 1000 * ms}));
}

TEST(CachePace, LittleSaysNothing) {
  EXPECT_FALSE(log_is_slower({}));
  EXPECT_FALSE(log_is_slower({1, 499 * ms, 30 * MiB, 1000 * ms}));
  EXPECT_FALSE(log_is_slower({1, 1000 * ms, 30 * MiB, 249 * ms}));
}

TEST(CachePace, WhatSeveralFilesShowedCountsTogether) {
  // The first file showed its log, whose flush was seen only when that was over.
  CachePace pace{8 * MiB, 1000 * ms, 0, 0};
  EXPECT_FALSE(log_is_slower(pace));
  pace += {0, 0, 8 * MiB, 500 * ms};
  EXPECT_TRUE(log_is_slower(pace));
}

TEST(CachePace, ADeviceIsSlowBelow32MiBASecond) {
  EXPECT_TRUE(is_device_slow(128 * KiB, 4 * ms));
  EXPECT_FALSE(is_device_slow(128 * KiB, 3 * ms)) << "42 MiB/s";
}

}  // namespace
}  // namespace forebay
