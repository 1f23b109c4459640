// Goal: what requests of a shape would take is never said to be more than a storage of any kind
// could do it in, and is what was measured where something was.
// Method: storages that are limited by operations, by bandwidth, by either and by a longest
// operation are asked for a few sizes; all others are compared with what they would take.

#include "core/plan/request_times.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

namespace forebay {
namespace {

RequestShape with_gap(Bytes gap) { return {MiB, gap}; }

TEST(RequestTimes, OfAShapeThatWasMeasuredTheNewestCountsHalf) {
  RequestTimes times;
  times.add(with_gap(0), 200e3, 0.004);
  EXPECT_DOUBLE_EQ(times.least(with_gap(0), 900e3), 0.004);
  times.add(with_gap(0), 300e3, 0.002);
  EXPECT_DOUBLE_EQ(times.least(with_gap(0), 200e3), 0.003);
}

TEST(RequestTimes, BetweenTwoBoth) {
  RequestTimes times;
  times.add(with_gap(0), 200e3, 0.003);
  times.add(with_gap(MiB), 1000e3, 0.006);
  // As long as a smaller request, or its share of the larger one's time.
  EXPECT_DOUBLE_EQ(times.least(with_gap(1), 300e3), 0.003);
  EXPECT_DOUBLE_EQ(times.least(with_gap(1), 800e3), 0.0048);
  EXPECT_DOUBLE_EQ(times.least(with_gap(1), 100e3), 0.0015);
  EXPECT_DOUBLE_EQ(times.least(with_gap(1), 1200e3), 0.006);
  EXPECT_DOUBLE_EQ(times.least(with_gap(1), 4000e3), 0.012);
}

TEST(RequestTimes, NoStorageIsFaster) {
  const std::function<double(double)> storages[] = {
      [](double) { return 1 / 300.0; },
      [](double bytes) { return bytes / 200e6; },
      [](double bytes) { return std::max(1 / 300.0, bytes / 200e6); },
      [](double bytes) { return 1 / 300.0 + bytes / 200e6; },
      [](double bytes) { return 1 / 300.0 * std::max(1.0, bytes / 512e3); },
  };
  for (const auto& storage : storages) {
    RequestTimes times;
    for (const double mean : {170e3, 290e3, 990e3}) {
      times.add(with_gap(static_cast<Bytes>(mean)), mean, storage(mean));
    }
    for (double mean = 50e3; mean < 1980e3; mean += 10e3) {
      EXPECT_LE(times.least(with_gap(1), mean), storage(mean) * (1 + 1e-9)) << mean;
    }
  }
}

}  // namespace
}  // namespace forebay
