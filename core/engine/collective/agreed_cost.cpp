#include "core/engine/collective/agreed_cost.hpp"

#include <algorithm>
#include <limits>

namespace forebay {
namespace {

/// Page caches differ from each other and from moment to moment by less.
constexpr double notable_factor = 4;

constexpr std::int64_t silent = std::numeric_limits<std::int64_t>::max();

}  // namespace

AgreedCost::AgreedCost(const StripeLayout& layout, TimedFile& file, int ranks_on_host,
                       const CostWord& start)
    : layout_(layout),
      file_(file),
      patience_(notable_factor * ranks_on_host),
      writing_(expected_cost(layout, true), {start[0], start[1]}),
      reading_(expected_cost(layout, false), {start[2], start[3]}) {}

CostWord AgreedCost::outlook() {
  hear(contribute(speak()));
  const CostSteps& writing = writing_.steps();
  const CostSteps& reading = reading_.steps();
  return {writing[0], writing[1], reading[0], reading[1]};
}

CostWord AgreedCost::speak() {
  CostWord word{};
  if (layout_.striped()) return word;
  const auto say = [this, &word](bool writing, std::size_t at) {
    const auto fit = fit_cost(file_.take_news(writing),
                              {expected_cost(layout_, writing), of(writing), patience_});
    if (!fit) return;
    const CostSteps steps = to_steps(*fit);
    std::copy(steps.begin(), steps.end(), word.begin() + static_cast<std::ptrdiff_t>(at));
  };
  say(true, 0);
  say(false, 2);
  return word;
}

void AgreedCost::hear(std::span<const CostWord> words) {
  Contribution reduced;
  reduced.fill(silent);
  for (const CostWord& word : words) {
    const Contribution one = contribute(word);
    for (std::size_t i = 0; i < reduced.size(); ++i) reduced[i] = std::min(reduced[i], one[i]);
  }
  hear(reduced);
}

AgreedCost::Contribution AgreedCost::contribute(const CostWord& word) {
  Contribution values;
  values.fill(silent);
  for (std::size_t i = 0; i < word.size(); ++i) {
    if (word[i] == no_step) continue;
    values[2 * i] = word[i];
    values[2 * i + 1] = -std::int64_t{word[i]};
  }
  return values;
}

void AgreedCost::hear(const Contribution& reduced) {
  CostWord lowest{};
  CostWord highest{};
  for (std::size_t i = 0; i < lowest.size(); ++i) {
    if (reduced[2 * i] == silent) continue;
    lowest[i] = static_cast<std::uint8_t>(reduced[2 * i]);
    highest[i] = static_cast<std::uint8_t>(-reduced[2 * i + 1]);
  }
  const bool wrote = writing_.hear({lowest[0], lowest[1]}, {highest[0], highest[1]});
  const bool read = reading_.hear({lowest[2], lowest[3]}, {highest[2], highest[3]});
  if (wrote || read) ++changes_;
}

}  // namespace forebay
