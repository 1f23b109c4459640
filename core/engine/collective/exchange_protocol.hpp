#pragma once

#include <cstdint>

namespace forebay {

/// The version of everything that ranks of one file send to each other: it goes up whenever a
/// message changes, for two ranks that disagree on one would wait for ever or take one thing for
/// another. Ranks compare it when they open a file.
inline constexpr std::int64_t exchange_protocol_version = 6;

}  // namespace forebay
