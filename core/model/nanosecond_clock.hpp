#pragma once

#include <chrono>
#include <cstdint>
#include <functional>

namespace forebay {

/// Nanoseconds since some moment. Passed in, so that tests say what time it is.
using NanosecondClock = std::function<std::int64_t()>;

inline NanosecondClock steady_nanoseconds() {
  return [] {
    return std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count();
  };
}

}  // namespace forebay
