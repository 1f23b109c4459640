#include "core/model/tiles_on_top.hpp"

#include <algorithm>
#include <cassert>

namespace forebay {

TilesOnTop make_top(const TiledTree& tiled, Bytes origin, const TreeShape& shape) {
  TilesOnTop top;
  top.node.kind = NodeKind::run;
  if (shape.empty()) return top;
  const TreeNode& root = shape.root();
  const Wide base = Wide{tiled.displacement} + origin;
  const Wide above = Wide{max_tree_bytes} - (base + root.upper);
  const Wide below = base + root.lower + max_tree_bytes;
  if (above < 0 || below < 0) return top;
  Wide copies = Wide{max_tree_bytes} / root.size;
  if (tiled.extent > 0) copies = std::min(copies, above / tiled.extent + 1);
  if (tiled.extent < 0) copies = std::min(copies, below / -Wide{tiled.extent} + 1);
  // All bytes of one span must be in reach of each other as well.
  const Wide room = Wide{max_tree_bytes} - (root.upper - root.lower);
  if (tiled.extent != 0) {
    copies =
        std::min(copies, room / (tiled.extent > 0 ? Wide{tiled.extent} : -Wide{tiled.extent}) + 1);
  }
  const auto count = static_cast<std::int64_t>(copies);
  top.base = static_cast<Bytes>(base);

  const bool leaf = root.kind == NodeKind::run;
  if ((leaf || root.kind == NodeKind::strided) && root.count > 1 &&
      Wide{root.stride} * root.count == Wide{tiled.extent}) {
    top.node = root;
    top.node.count *= count;
  } else if (leaf && root.count == 1) {
    top.node = root;
    if (root.block == tiled.extent) {
      top.node.block *= count;
    } else {
      top.node.count = count;
      top.node.stride = tiled.extent;
    }
  } else {
    top.node.kind = NodeKind::strided;
    top.node.count = count;
    top.node.stride = tiled.extent;
    top.node.child = static_cast<std::int32_t>(shape.nodes.size() - 1);
  }
  [[maybe_unused]] const bool within = complete_node(shape, top.node);
  assert(within);
  return top;
}

}  // namespace forebay
