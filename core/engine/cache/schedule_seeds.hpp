#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <string>

namespace forebay {

/// For tests: runs `schedule` with the seeds from 1 to `count`, up to the first one with which
/// something fails, which is told. With SCHEDULE_SEEDS=N or SCHEDULE_SEEDS=N-M in the environment
/// the seeds are those: to repeat what failed, or to look for more.
inline void run_schedules(std::uint64_t count, const std::function<void(std::uint64_t)>& schedule) {
  std::uint64_t first = 1;
  std::uint64_t last = count;
  if (const char* asked = std::getenv("SCHEDULE_SEEDS")) {
    char* end = nullptr;
    first = std::strtoull(asked, &end, 10);
    last = *end == '-' ? std::strtoull(end + 1, &end, 10) : first;
    ASSERT_TRUE(*end == '\0' && first <= last) << "SCHEDULE_SEEDS=" << asked << " is no N or N-M";
  }
  std::cout << "schedules with seeds " << first << " to " << last << "\n";
  for (std::uint64_t seed = first; seed <= last; ++seed) {
    const std::string told = "the seed is " + std::to_string(seed) +
                             ": SCHEDULE_SEEDS=" + std::to_string(seed) + " runs it alone";
    SCOPED_TRACE(told);
    schedule(seed);
    if (::testing::Test::HasFailure()) {
      std::cout << "the first to fail: " << told << "\n";
      return;
    }
  }
}

}  // namespace forebay
