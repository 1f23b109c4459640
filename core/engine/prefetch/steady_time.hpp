#pragma once

#include <chrono>
#include <cstdint>

namespace forebay {

/// Nanoseconds of a clock that is never set.
inline std::int64_t steady_ns() {
  return std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace forebay
