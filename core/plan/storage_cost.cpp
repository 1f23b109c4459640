#include "core/plan/storage_cost.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

namespace forebay {
namespace {

constexpr int striped_io_depth = 4;
/// A file that is not striped has one call per window, and two windows are under way at a time.
constexpr int slow_io_depth = 2;

constexpr StorageCost server_cost{.call_ns = 1.0e6, .byte_ns = 1.0};

/// Fewer calls are the first ones, which also pay for what is done once.
constexpr std::size_t fewest_calls = 4;

/// Calls whose sizes differ by less say nothing of the price of a byte: on a page cache this much
/// is copied in the time that one call varies by.
constexpr Bytes least_difference = 16 * KiB;

/// More than this is no cost but an outage: ten seconds a call, ten microseconds a byte.
constexpr double most_call_ns = 1e10;
constexpr double most_byte_ns = 1e4;

constexpr double steps_per_octave = 4;
constexpr int notable_steps = 8;  ///< A factor of four.
constexpr double step_1_call_ns = 1;
constexpr double step_1_byte_ns = 1.0 / 1024;

/// What some calls come to.
struct CallSum {
  double calls = 0;
  double bytes = 0;
  double ns = 0;

  void add(const TimedCall& call) {
    ++calls;
    bytes += static_cast<double>(call.bytes);
    ns += static_cast<double>(call.ns);
  }
  double mean_bytes() const { return bytes / calls; }
  double mean_ns() const { return ns / calls; }
  /// How many times what `cost` says the calls took.
  double ratio_to(const StorageCost& cost) const {
    return ns / (calls * cost.call_ns + bytes * cost.byte_ns);
  }
};

CallSum sum_of(std::span<const TimedCall> calls) {
  CallSum sum;
  for (const TimedCall& call : calls) sum.add(call);
  return sum;
}

/// `calls` without the eighth of them, and at least one, that took longest for their size.
std::vector<TimedCall> without_slowest(std::span<const TimedCall> calls,
                                       const StorageCost& expected) {
  std::vector<TimedCall> kept(calls.begin(), calls.end());
  const auto dropped = static_cast<std::ptrdiff_t>(std::max<std::size_t>(1, calls.size() / 8));
  const auto ratio = [&expected](const TimedCall& call) {
    return static_cast<double>(call.ns) / expected.of(call.bytes);
  };
  std::nth_element(kept.begin(), kept.end() - dropped, kept.end(),
                   [&ratio](const auto& a, const auto& b) { return ratio(a) < ratio(b); });
  kept.erase(kept.end() - dropped, kept.end());
  return kept;
}

std::uint8_t to_step(double ns, double step_1_ns) {
  const double step = 1 + steps_per_octave * std::log2(std::max(ns, step_1_ns) / step_1_ns);
  return static_cast<std::uint8_t>(std::clamp(std::lround(step), 1L, 255L));
}

double from_step(std::uint8_t step, double step_1_ns) {
  return step_1_ns * std::exp2((step - 1) / steps_per_octave);
}

StorageCost bounded(double call_ns, double byte_ns) {
  return {.call_ns = std::clamp(call_ns, 0.0, most_call_ns),
          .byte_ns = std::clamp(byte_ns, 0.0, most_byte_ns),
          .measured = true};
}

/// The line through the means of the smaller and of the larger calls; none where sizes are alike,
/// or where it would rest on a single call.
std::optional<StorageCost> line_through(std::span<const TimedCall> calls) {
  const auto [least, most] = std::minmax_element(
      calls.begin(), calls.end(), [](const auto& a, const auto& b) { return a.bytes < b.bytes; });
  if (most->bytes - least->bytes < least_difference) return std::nullopt;
  const double middle =
      std::sqrt((static_cast<double>(least->bytes) + 1) * (static_cast<double>(most->bytes) + 1));
  CallSum small;
  CallSum large;
  for (const TimedCall& call : calls) {
    (static_cast<double>(call.bytes) < middle ? small : large).add(call);
  }
  if (small.calls < 2 || large.calls < 2) return std::nullopt;
  const double byte_ns = std::max(
      0.0, (large.mean_ns() - small.mean_ns()) / (large.mean_bytes() - small.mean_bytes()));
  return bounded(small.mean_ns() - small.mean_bytes() * byte_ns, byte_ns);
}

/// The cost nearest to what is held, in proportion to what call and bytes are thought to take, that
/// explains calls of one size.
StorageCost share_difference(const CallSum& calls, const StorageCost& held) {
  const double bytes = std::max(1.0, calls.mean_bytes());
  const double difference_ns = calls.mean_ns() - held.call_ns - held.byte_ns * bytes;
  const StorageCost& typical = held.measured ? held : server_cost;
  const double call_square = std::pow(typical.call_ns, 2);
  const double byte_square = std::pow(typical.byte_ns * bytes, 2);
  const double call_share = call_square / (call_square + byte_square);
  return bounded(held.call_ns + difference_ns * call_share,
                 held.byte_ns + difference_ns * (1 - call_share) / bytes);
}

std::uint8_t settle(std::uint8_t held, std::uint8_t expected, std::uint8_t lowest,
                    std::uint8_t highest) {
  if (lowest == no_step || highest == no_step) return held;
  if (lowest >= held + notable_steps) return lowest;
  if (highest + notable_steps <= held) return std::max(highest, expected);
  return held;
}

}  // namespace

StorageCost expected_cost(const StripeLayout& layout, bool writing) {
  if (layout.striped()) return server_cost;
  return {.call_ns = writing ? 1000.0 : 700.0, .byte_ns = 0.4};
}

std::optional<StorageCost> fit_cost(std::span<const TimedCall> calls, const CostBelief& belief) {
  if (calls.size() < fewest_calls) return std::nullopt;
  const std::vector<TimedCall> kept = without_slowest(calls, belief.expected);
  const CallSum sum = sum_of(kept);
  if (sum.ratio_to(belief.expected) < belief.patience) {
    // Large calls may fit both what is expected, with others to wait for, and what is held.
    const bool held_fits = belief.held.measured && sum.ratio_to(belief.held) > 0.25;
    return held_fits ? std::nullopt : std::optional(belief.expected);
  }
  if (const auto line = line_through(kept)) return line;
  return share_difference(sum, belief.held);
}

CostSteps to_steps(const StorageCost& cost) {
  return {to_step(cost.call_ns, step_1_call_ns), to_step(cost.byte_ns, step_1_byte_ns)};
}

HeldCost::HeldCost(const StorageCost& expected, const CostSteps& start)
    : expected_(expected), expected_steps_(to_steps(expected)), steps_(expected_steps_) {
  for (std::size_t i = 0; i < steps_.size(); ++i) steps_[i] = std::max(steps_[i], start[i]);
  set_cost();
}

bool HeldCost::hear(const CostSteps& lowest, const CostSteps& highest) {
  const CostSteps before = steps_;
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    steps_[i] = settle(steps_[i], expected_steps_[i], lowest[i], highest[i]);
  }
  set_cost();
  return steps_ != before;
}

void HeldCost::set_cost() {
  const auto value = [this](std::size_t i, double expected_ns, double step_1_ns) {
    return steps_[i] == expected_steps_[i] ? expected_ns : from_step(steps_[i], step_1_ns);
  };
  cost_ = {.call_ns = value(0, expected_.call_ns, step_1_call_ns),
           .byte_ns = value(1, expected_.byte_ns, step_1_byte_ns),
           .measured = steps_ != expected_steps_};
}

int automatic_io_depth(const StripeLayout& layout, bool writing, const StorageCost& cost,
                       Bytes window_bytes) {
  if (layout.striped()) return striped_io_depth;
  const double page_cache_ns = expected_cost(layout, writing).of(window_bytes);
  return cost.measured && cost.of(window_bytes) >= 2 * page_cache_ns ? slow_io_depth : 0;
}

}  // namespace forebay
