#include "core/plan/plan_places.hpp"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <utility>

namespace forebay {

PlanPlaces::PlanPlaces(std::vector<Extent> extents)
    : extents_(std::move(extents)), by_offset_(extents_.size()) {
  before_.reserve(extents_.size() + 1);
  for (const Extent& extent : extents_) before_.push_back(before_.back() + extent.length);
  std::iota(by_offset_.begin(), by_offset_.end(), std::size_t{0});
  std::ranges::sort(by_offset_, {}, [this](std::size_t index) { return extents_[index].offset; });
  furthest_.reserve(extents_.size());
  Bytes furthest = 0;
  for (const std::size_t index : by_offset_) {
    furthest = std::max(furthest, extents_[index].end());
    furthest_.push_back(furthest);
  }
}

std::optional<Bytes> PlanPlaces::of(Bytes offset, Bytes from) const {
  const auto first = static_cast<std::size_t>(at(from).extent);
  const auto behind = std::ranges::upper_bound(
      by_offset_, offset, {}, [this](std::size_t index) { return extents_[index].offset; });
  auto left = static_cast<std::size_t>(behind - by_offset_.begin());
  std::optional<std::size_t> nearest;
  const auto steps_to = [&](std::size_t index) {
    return index >= first ? index - first : index + extents_.size() - first;
  };
  // Of those that begin before it, until all that are left end before it.
  for (; left > 0 && furthest_[left - 1] > offset; --left) {
    const std::size_t index = by_offset_[left - 1];
    if (offset >= extents_[index].end()) continue;
    if (!nearest || steps_to(index) < steps_to(*nearest)) nearest = index;
  }
  if (!nearest) return std::nullopt;
  return before_[*nearest] + offset - extents_[*nearest].offset;
}

std::optional<Bytes> PlanPlaces::of_last(Extent read, Bytes from) const {
  const auto last = of(read.end() - 1, from);
  return last ? last : of(read.offset, from);
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
