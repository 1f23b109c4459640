#include "core/model/extent_set.hpp"

#include <algorithm>
#include <utility>

namespace forebay {

ExtentSet::ExtentSet(std::vector<Extent> extents) {
  std::ranges::sort(extents, {}, &Extent::offset);
  for (const Extent& extent : extents) {
    if (extent.empty()) continue;
    if (!extents_.empty() && extent.offset <= extents_.back().end()) {
      extents_.back() = hull(extents_.back(), extent);
    } else {
      extents_.push_back(extent);
    }
  }
}

/// The first that ends at `offset` or behind it.
ExtentSet::Place ExtentSet::first_behind(Bytes offset) const {
  return std::ranges::lower_bound(extents_, offset, {}, &Extent::end);
}

Bytes ExtentSet::overlap(Extent extent) const {
  Bytes result = 0;
  for (auto at = first_behind(extent.offset); at != extents_.end() && at->offset < extent.end();
       ++at) {
    result += intersect(*at, extent).length;
  }
  return result;
}

Bytes ExtentSet::add(Extent extent) {
  if (extent.empty()) return 0;
  const Bytes there = overlap(extent);
  const auto first = first_behind(extent.offset);
  auto end = first;
  Extent joined = extent;
  while (end != extents_.end() && end->offset <= extent.end()) joined = hull(joined, *end++);
  if (first == end) {
    if (extents_.size() < most_) extents_.insert(first, joined);
    return there;
  }
  const auto kept = extents_.erase(first + 1, end) - 1;
  *kept = joined;
  return there;
}

}  // namespace forebay
