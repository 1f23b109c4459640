#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "core/model/extent.hpp"
#include "core/model/strided_tree.hpp"

namespace forebay {

/// Data positions [data_start, data_end) of a monotone view.
struct TiledPart {
  const TiledTree* tree = nullptr;
  Bytes data_start = 0;
  Bytes data_end = 0;
};

/// Which bytes of a window the pieces of several ranks cover. Always exact: that the lengths add up
/// to the window's proves nothing where pieces overlap.
struct Coverage {
  bool dense = false;        ///< Every byte of the window is covered.
  bool overlapping = false;  ///< Some byte is covered more than once.
  bool too_many = false;     ///< More extents than asked for: `extents` is empty, the rest unknown.
  Bytes covered = 0;         ///< Bytes covered, each counted once.
  /// What is covered: disjoint, not adjacent, ascending, within the window.
  std::vector<Extent> extents;
};

/// The coverage of `window` by `parts`. Ranks whose pieces share a stride, as interleaved pieces
/// and rows of blocks do, are merged period by period: P ranks with 8-byte pieces in turn cost O(P
/// log P) whatever the number of pieces. Irregular pieces cost a few nanoseconds each.
Coverage coverage(std::span<const TiledPart> parts, Extent window, std::size_t extents_max = 4096);

}  // namespace forebay
