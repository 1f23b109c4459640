#pragma once

#include <chrono>

namespace forebay {

/// So long the end of a thread that reads ahead, and of what it has under way, is waited for: a
/// file server may not answer it. Two such ends are shorter than others wait for who ends them
/// (bounded_lock.hpp).
constexpr std::chrono::milliseconds longest_end{1000};

}  // namespace forebay
