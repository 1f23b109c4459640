#pragma once

#include <cstdint>
#include <functional>

namespace forebay {

/// Nanoseconds since some moment. Passed in, so that tests say what time it is.
using NanosecondClock = std::function<std::int64_t()>;

}  // namespace forebay
