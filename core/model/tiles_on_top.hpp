#pragma once

#include <algorithm>
#include <cstdint>

#include "core/model/extent.hpp"
#include "core/model/strided_tree_nodes.hpp"

// The walk treats the tiles as one more stride around the tree, the "top": where the tree continues
// from copy to copy, the top is merged with the tree's root by the rules of canonical form, so that
// 8 bytes of every 16 are one run of all tiles and a dense view is one block.

namespace forebay {

/// As many copies of the tree as lie within +-2^62 bytes, as a node around the root. Positions
/// beyond do not exist.
struct TilesOnTop {
  TreeNode node;
  Bytes base = 0;  ///< Offset of the first byte of copy 0.
};

/// Empty where the tree is.
TilesOnTop make_top(const TiledTree& tiled, Bytes origin, const TreeShape& shape);

/// Where entry `i` of `node` lies in it.
inline Bytes entry_offset(const TreeShape& shape, const TreeNode& node, std::int64_t i) {
  return node.kind == NodeKind::strided || node.kind == NodeKind::run ? i * node.stride
                                                                      : shape.offsets(node)[i];
}

/// The entry of `node` that holds its data byte `position`; `position` becomes relative to it.
inline std::int64_t entry_of_data(const TreeShape& shape, const TreeNode& node, Bytes& position) {
  if (node.count == 1) return 0;
  if (node.kind == NodeKind::blocks || node.kind == NodeKind::sequence) {
    const Bytes* prefix = shape.prefix(node);
    const std::int64_t i = std::upper_bound(prefix, prefix + node.count, position) - prefix - 1;
    position -= prefix[i];
    return i;
  }
  const Bytes size = node.is_leaf() ? node.block : shape.child(node).size;
  const std::int64_t i = position / size;
  position -= i * size;
  return i;
}

}  // namespace forebay
