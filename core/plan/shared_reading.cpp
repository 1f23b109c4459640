#include "core/plan/shared_reading.hpp"

#include <algorithm>
#include <utility>

namespace forebay {
namespace {

/// As CatchUpWait has it for readers that meet in the page cache.
constexpr std::int64_t patience_ns = 200'000'000;
constexpr std::int64_t part_of_reading = 10;

constexpr std::int64_t longest_pause_ns = 100'000'000;
constexpr std::int64_t longest_silence_ns = 200'000'000;

/// Of the window, what a reader may be behind without harm.
constexpr Bytes part_behind = 2;

std::int64_t patience_after(std::int64_t reading_ns) {
  return patience_ns + reading_ns / part_of_reading;
}

}  // namespace

std::optional<std::size_t> piece_to_give_up(std::span<const HeldPiece> held, Bytes tail,
                                            Bytes wanted) {
  std::optional<std::size_t> first;
  std::optional<std::size_t> last;
  for (std::size_t i = 0; i < held.size(); ++i) {
    if (!held[i].is_ready) continue;
    if (held[i].end <= tail && (!first || held[i].end < held[*first].end)) first = i;
    if (held[i].begin > wanted && (!last || held[i].begin > held[*last].begin)) last = i;
  }
  return first ? first : last;
}

bool may_join(Bytes place, std::span<const Fellow> fellows, Bytes passed, std::int64_t reading_ns,
              Bytes window) {
  if (fellows.empty()) return true;
  const auto [last, first] = std::ranges::minmax(fellows, {}, &Fellow::front);
  const Bytes apart = std::max(first.front, place) - std::min(last.front, place);
  if (apart <= window) return true;
  if (apart > most_windows_apart * window) return false;
  const double reach = static_cast<double>(passed) *
                       static_cast<double>(patience_after(reading_ns)) /
                       static_cast<double>(std::max<std::int64_t>(reading_ns, 1));
  return static_cast<double>(apart) <= reach;
}

bool is_silent(std::int64_t asked_ns, std::int64_t answered_ns, std::int64_t now_ns) {
  return asked_ns > answered_ns && now_ns - asked_ns > longest_silence_ns;
}

std::vector<std::size_t> LaggardPatience::given_up(const Seen& seen) {
  if (!since_ns_) since_ns_ = seen.now_ns;
  const std::int64_t waited_ns = waited_ns_ + seen.now_ns - *since_ns_;
  const bool is_at_end = waited_ns > patience_after(seen.reading_ns);
  std::vector<std::size_t> result;
  for (std::size_t i = 0; i < seen.others.size(); ++i) {
    const Fellow& other = seen.others[i];
    const bool is_far = (seen.place - other.front) * part_behind > seen.window;
    if (!is_far && other.front >= seen.awaited) continue;
    const std::int64_t pause_ns = seen.now_ns - std::max(other.moved_ns, *since_ns_);
    if (is_at_end || pause_ns > longest_pause_ns) result.push_back(i);
  }
  return result;
}

void LaggardPatience::over(std::int64_t now_ns) {
  if (const auto since_ns = std::exchange(since_ns_, std::nullopt))
    waited_ns_ += now_ns - *since_ns;
}

}  // namespace forebay
