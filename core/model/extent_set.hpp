#pragma once

#include <cstddef>
#include <limits>
#include <vector>

#include "core/model/extent.hpp"

namespace forebay {

/// Bytes of a file, each of them in it once.
class ExtentSet {
 public:
  /// Extents that lie apart, at most. What would need one more is not added.
  explicit ExtentSet(std::size_t most = std::numeric_limits<std::size_t>::max()) : most_(most) {}
  /// Of `extents`, which may overlap, in any order.
  explicit ExtentSet(std::vector<Extent> extents);

  /// Adds what was not there. How many bytes of `extent` were.
  Bytes add(Extent extent);
  /// How many bytes of `extent` are in it.
  Bytes overlap(Extent extent) const;

 private:
  using Place = std::vector<Extent>::const_iterator;
  Place first_behind(Bytes offset) const;

  std::vector<Extent> extents_;  ///< Ascending; none touches the next.
  std::size_t most_ = std::numeric_limits<std::size_t>::max();
};

}  // namespace forebay
