#include "core/plan/cache_trial.hpp"

#include <algorithm>

namespace forebay {
namespace {

constexpr int enough_fast = 3;
constexpr std::int64_t shortest_interval = 16;
constexpr std::int64_t longest_interval = 256;

}  // namespace

bool is_from_memory(Bytes bytes, std::int64_t ns) {
  constexpr std::int64_t call_ns = 20'000;
  constexpr Bytes bytes_per_ns = 4;
  return ns <= call_ns + bytes / bytes_per_ns;
}

bool CacheTrial::leaves(bool is_first) {
  if (fast_ >= enough_fast) return is_first;
  if (until_next_ > 0) {
    --until_next_;
    return false;
  }
  until_next_ = interval_;  // Sooner, if its answer comes before.
  if (fast_ == 0) interval_ = std::min(2 * interval_, longest_interval);
  return true;
}

void CacheTrial::took(Bytes bytes, std::int64_t ns) {
  if (is_from_memory(bytes, ns)) {
    fast_ = std::min(fast_ + 1, enough_fast);
    interval_ = shortest_interval;
    until_next_ = std::min<std::int64_t>(until_next_, 1);
    return;
  }
  if (fast_ > 0) until_next_ = interval_;
  fast_ = 0;
}

bool CacheTrial::is_warm() const { return fast_ >= enough_fast; }

}  // namespace forebay
