#include "core/plan/request_times.hpp"

#include <algorithm>
#include <cassert>
#include <iterator>

namespace forebay {
namespace {

constexpr double weight_of_newest = 0.5;

/// Of the bandwidth that was seen, where nothing larger was tried.
constexpr double credit = 2;

}  // namespace

void RequestTimes::add(const RequestShape& shape, double mean, double seconds) {
  const auto known = std::ranges::find(measured_, shape, &Measured::shape);
  if (known == measured_.end()) {
    measured_.push_back({shape, mean, seconds});
  } else {
    known->mean += weight_of_newest * (mean - known->mean);
    known->seconds += weight_of_newest * (seconds - known->seconds);
  }
  std::ranges::sort(measured_, {}, &Measured::mean);
}

std::optional<double> RequestTimes::mean_of(const RequestShape& shape) const {
  const auto known = std::ranges::find(measured_, shape, &Measured::shape);
  if (known == measured_.end()) return std::nullopt;
  return known->mean;
}

double RequestTimes::least(const RequestShape& shape, double mean) const {
  const auto known = std::ranges::find(measured_, shape, &Measured::shape);
  if (known != measured_.end()) return known->seconds;
  assert(!measured_.empty());
  const auto larger = std::ranges::upper_bound(measured_, mean, {}, &Measured::mean);
  const auto in_proportion = [mean](const Measured& other) {
    return other.seconds * mean / other.mean;
  };
  if (larger == measured_.begin()) return in_proportion(*larger);
  const Measured& smaller = *std::prev(larger);
  const double for_its_bytes =
      larger == measured_.end() ? in_proportion(smaller) / credit : in_proportion(*larger);
  return std::max(smaller.seconds, for_its_bytes);
}

}  // namespace forebay
