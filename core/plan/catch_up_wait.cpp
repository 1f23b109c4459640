#include "core/plan/catch_up_wait.hpp"

#include <algorithm>

namespace forebay {
namespace {

constexpr std::int64_t first_allowance_ns = 200'000'000;
constexpr std::int64_t part_of_time = 10;

/// Too little to tell how fast a reader is.
constexpr std::int64_t shortest_reading_ns = 1'000'000;

constexpr std::int64_t between_looks_ns = 50'000'000;

/// After a wait in vain one reads this many times as long before the next.
constexpr std::int64_t pause_factor = 10;

}  // namespace

bool CatchUpWait::waits(const Seen& seen) {
  const std::int64_t now = seen.reading_ns;
  const bool may_begin = seen.is_full && now >= std::max(not_before_ns_, shortest_reading_ns);
  if (!is_waiting_ && !may_begin) return false;
  const bool is_of_use =
      std::ranges::any_of(seen.behind, [&](Bytes behind) { return is_in_reach(seen, behind); });
  if (!is_waiting_) {
    if (!is_of_use) return false;
    is_waiting_ = true;
    since_ns_ = now;
    look(seen);
    return true;
  }
  const std::int64_t pause_ns = pause_factor * (now - since_ns_);
  if (!is_of_use) return end(now, anybody_arrived(seen) ? 0 : pause_ns);
  if (now - looked_ns_ < between_looks_ns) return true;
  if (!anybody_arrives(seen)) return end(now, pause_ns);
  look(seen);
  return true;
}

std::int64_t CatchUpWait::allowed_ns(const Seen& seen) const {
  const std::int64_t waiting_ns = is_waiting_ ? seen.reading_ns - since_ns_ : 0;
  return first_allowance_ns + seen.reading_ns / part_of_time - waited_ns_ - waiting_ns;
}

/// Whether it is worth waiting for, if it is as fast as this one has been, which had to share with
/// it.
bool CatchUpWait::is_in_reach(const Seen& seen, Bytes behind) const {
  const double reach = static_cast<double>(seen.passed) * static_cast<double>(allowed_ns(seen)) /
                       static_cast<double>(seen.reading_ns);
  return behind > harmless_ && static_cast<double>(behind) <= reach;
}

bool CatchUpWait::anybody_arrived(const Seen& seen) const {
  for (std::size_t i = 0; i < std::min(read_then_.size(), seen.behind.size()); ++i) {
    if (read_then_[i] >= 0 && seen.behind[i] <= harmless_) return true;
  }
  return false;
}

/// By what they have read since the last look. Of who came since nothing is known: it may.
bool CatchUpWait::anybody_arrives(const Seen& seen) const {
  const auto spent_ns = static_cast<double>(seen.reading_ns - looked_ns_);
  for (std::size_t i = 0; i < seen.behind.size(); ++i) {
    const Bytes behind = seen.behind[i];
    if (!is_in_reach(seen, behind)) continue;
    if (i >= read_then_.size() || read_then_[i] < 0) return true;
    const auto read = static_cast<double>(seen.passed - behind - read_then_[i]);
    if (read / spent_ns * static_cast<double>(allowed_ns(seen)) >= static_cast<double>(behind)) {
      return true;
    }
  }
  return false;
}

void CatchUpWait::look(const Seen& seen) {
  looked_ns_ = seen.reading_ns;
  read_then_.clear();
  for (const Bytes behind : seen.behind) {
    read_then_.push_back(is_in_reach(seen, behind) ? seen.passed - behind : -1);
  }
}

/// False: it does not wait.
bool CatchUpWait::end(std::int64_t now_ns, std::int64_t pause_ns) {
  is_waiting_ = false;
  waited_ns_ += now_ns - since_ns_;
  not_before_ns_ = now_ns + pause_ns;
  return false;
}

}  // namespace forebay
