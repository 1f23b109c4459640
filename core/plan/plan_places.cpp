#include "core/plan/plan_places.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace forebay {

PlanPlaces::PlanPlaces(std::vector<Extent> extents) : extents_(std::move(extents)) {
  before_.reserve(extents_.size() + 1);
  for (const Extent& extent : extents_) before_.push_back(before_.back() + extent.length);
}

std::optional<Bytes> PlanPlaces::of(Bytes offset, Bytes from) const {
  const auto first = static_cast<std::size_t>(at(from).extent);
  for (std::size_t step = 0; step < extents_.size(); ++step) {
    const std::size_t index = (first + step) % extents_.size();
    const Extent& extent = extents_[index];
    if (offset < extent.offset || offset >= extent.end()) continue;
    return before_[index] + offset - extent.offset;
  }
  return std::nullopt;
}

Bytes PlanPlaces::of(const ReadingPlace& place) const {
  if (place.extent >= extents_.size()) return end();
  return before_[static_cast<std::size_t>(place.extent)] + place.at;
}

ReadingPlace PlanPlaces::at(Bytes place) const {
  const auto after = std::ranges::upper_bound(before_, place);
  const auto index = static_cast<std::size_t>(after - before_.begin()) - 1;
  return {index, index < extents_.size() ? place - before_[index] : 0};
}

}  // namespace forebay
