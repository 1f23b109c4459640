#include <algorithm>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "core/model/strided_tree_nodes.hpp"
#include "core/model/tiles_on_top.hpp"

namespace forebay {
namespace {

/// Where a seek ends: byte `within` of block `index` of a leaf.
struct Landing {
  const TreeNode* leaf = nullptr;
  Bytes base = 0;  ///< Offset of the leaf's first byte.
  std::int64_t index = 0;
  Bytes within = 0;
  Bytes position =
      0;  ///< Data bytes before the landing, from the start of the node descended from.
};

Bytes block_length(const TreeShape& shape, const TreeNode& node, std::int64_t i) {
  return node.kind == NodeKind::blocks ? shape.prefix(node)[i + 1] - shape.prefix(node)[i]
                                       : node.block;
}

/// The first entry of a monotone node that ends above `offset` (relative to the node, and below
/// node.upper, so that there is one).
std::int64_t entry_above(const TreeShape& shape, const TreeNode& node, Bytes offset) {
  if (node.count == 1) return 0;
  if (node.kind == NodeKind::run || node.kind == NodeKind::strided) {
    const Bytes span = node.kind == NodeKind::run ? node.block : shape.child(node).upper;
    if (offset < span) return 0;
    const std::int64_t i = offset / node.stride;
    return i + (offset - i * node.stride >= span ? 1 : 0);
  }
  // The last entry that starts at or below the offset, or the one after it.
  const Bytes* offsets = shape.offsets(node);
  const std::int64_t i = std::upper_bound(offsets, offsets + node.count, offset) - offsets - 1;
  if (i < 0) return 0;
  const Bytes span = node.is_leaf() ? block_length(shape, node, i) : shape.child(node, i).upper;
  return offset - offsets[i] >= span ? i + 1 : i;
}

Bytes data_before_entry(const TreeShape& shape, const TreeNode& node, std::int64_t i) {
  if (node.kind == NodeKind::blocks || node.kind == NodeKind::sequence) {
    return shape.prefix(node)[i];
  }
  return i * (node.is_leaf() ? node.block : shape.child(node).size);
}

/// Down to the leaf that holds data byte `position` < node.size; `enter(node, entry, base)` is told
/// of every inner node on the way.
template <typename Enter>
Landing land_on_data(const TreeShape& shape, const TreeNode* node, Bytes base, Bytes position,
                     const Enter& enter) {
  Landing landing;
  landing.position = position;
  while (true) {
    const std::int64_t i = entry_of_data(shape, *node, position);
    if (node->is_leaf()) {
      landing.leaf = node;
      landing.base = base;
      landing.index = i;
      landing.within = position;
      return landing;
    }
    enter(node, i, base);
    base += entry_offset(shape, *node, i);
    node = &shape.child(*node, i);
  }
}

/// Down to the leaf with the first byte at or above `offset` < base + node->upper; monotone trees.
template <typename Enter>
Landing land_on_offset(const TreeShape& shape, const TreeNode* node, Bytes base, Bytes offset,
                       const Enter& enter) {
  Landing landing;
  while (true) {
    const std::int64_t i = entry_above(shape, *node, offset - base);
    landing.position += data_before_entry(shape, *node, i);
    if (node->is_leaf()) {
      landing.leaf = node;
      landing.base = base;
      landing.index = i;
      landing.within = std::max<Bytes>(0, offset - base - entry_offset(shape, *node, i));
      landing.position += landing.within;
      return landing;
    }
    enter(node, i, base);
    base += entry_offset(shape, *node, i);
    node = &shape.child(*node, i);
  }
}

}  // namespace

/// Inner nodes from the top down to the leaf under the cursor, and the group of equal, equally
/// spaced blocks of that leaf that is being consumed. The group is never used up, except at the
/// end.
struct TreeCursor::State {
  struct Level {
    const TreeNode* node;
    std::int64_t index;
    Bytes base;
  };

  std::shared_ptr<const TreeShape> shape;
  TilesOnTop top;
  std::vector<Level> levels;
  const TreeNode* leaf = nullptr;
  Bytes leaf_base = 0;
  std::int64_t leaf_next = 0;  ///< First block of the leaf behind the group.

  Bytes position = 0;
  Bytes group_offset = 0;
  Bytes group_block = 0;
  Bytes group_stride = 0;
  std::int64_t group_left = 0;  ///< Blocks, one that is partly consumed included.
  Bytes within = 0;             ///< Consumed bytes of the group's first block.

  explicit State(const TiledTree& tiled)
      : shape(tiled.tree.shape_), top(make_top(tiled, tiled.tree.origin_, *shape)) {
    levels.reserve(top.node.depth);
    seek_data(0);
  }

  State(const State& other) { *this = other; }

  State& operator=(const State& other) {
    if (this == &other) return *this;
    shape = other.shape;
    top = other.top;
    levels = other.levels;
    leaf = other.leaf == &other.top.node ? &top.node : other.leaf;
    if (!levels.empty()) levels.front().node = &top.node;
    leaf_base = other.leaf_base;
    leaf_next = other.leaf_next;
    position = other.position;
    group_offset = other.group_offset;
    group_block = other.group_block;
    group_stride = other.group_stride;
    group_left = other.group_left;
    within = other.within;
    return *this;
  }

  void seek_data(Bytes target) {
    levels.clear();
    if (target >= top.node.size) return stop();
    const auto enter = [this](const TreeNode* node, std::int64_t index, Bytes base) {
      levels.push_back({node, index, base});
    };
    land(land_on_data(*shape, &top.node, top.base, target, enter));
  }

  void seek_offset(Bytes target) {
    levels.clear();
    if (top.node.size == 0 || target >= top.base + top.node.upper) return stop();
    target = std::max(target, top.base);
    const auto enter = [this](const TreeNode* node, std::int64_t index, Bytes base) {
      levels.push_back({node, index, base});
    };
    land(land_on_offset(*shape, &top.node, top.base, target, enter));
  }

  /// Consumes `count` whole blocks of the group.
  void consume_blocks(std::int64_t count) {
    position += count * group_block;
    group_left -= count;
    if (group_left > 0) {
      group_offset += count * group_stride;
    } else {
      next_group();
    }
  }

  /// Consumes `length` bytes of the group's first block.
  void consume_bytes(Bytes length) {
    within += length;
    if (within < group_block) {
      position += length;
    } else {
      position += length - group_block;
      within = 0;
      consume_blocks(1);
    }
  }

 private:
  void stop() {
    position = top.node.size;
    group_left = 0;
    within = 0;
  }

  void land(const Landing& landing) {
    leaf = landing.leaf;
    leaf_base = landing.base;
    position = landing.position;
    load_group(landing.index);
    within = landing.within;
  }

  /// The group that starts with block `first` of the leaf.
  void load_group(std::int64_t first) {
    if (leaf->kind == NodeKind::run) {
      group_offset = leaf_base + first * leaf->stride;
      group_block = leaf->block;
      group_stride = leaf->stride;
      group_left = leaf->count - first;
      leaf_next = leaf->count;
      return;
    }
    // Looks ahead for a bounded number of blocks, so that a seek stays cheap.
    constexpr std::int64_t group_blocks_max = 64;
    const std::int64_t limit = std::min(leaf->count, first + group_blocks_max);
    const Bytes* offsets = shape->offsets(*leaf);
    std::int64_t next = first + 1;
    group_offset = leaf_base + offsets[first];
    group_block = block_length(*shape, *leaf, first);
    group_stride = 0;
    if (next < limit) {
      const Bytes stride = offsets[next] - offsets[first];
      while (next < limit && offsets[next] - offsets[next - 1] == stride &&
             block_length(*shape, *leaf, next) == group_block) {
        ++next;
      }
      if (next > first + 1) group_stride = stride;
    }
    group_left = next - first;
    leaf_next = next;
  }

  void next_group() {
    if (leaf_next < leaf->count) return load_group(leaf_next);
    while (!levels.empty()) {
      Level& level = levels.back();
      if (++level.index < level.node->count) return enter_leaf();
      levels.pop_back();
    }
    stop();
  }

  /// From the current entry of the deepest level down to the first leaf in it.
  void enter_leaf() {
    const Level* level = &levels.back();
    Bytes base = level->base + entry_offset(*shape, *level->node, level->index);
    const TreeNode* node = &shape->child(*level->node, level->index);
    while (!node->is_leaf()) {
      levels.push_back({node, 0, base});
      node = &shape->child(*node, 0);  // Entry 0 lies at 0.
    }
    leaf = node;
    leaf_base = base;
    load_group(0);
  }
};

TreeCursor::TreeCursor(const TiledTree& tiled) : state_(std::make_unique<State>(tiled)) {}
TreeCursor::~TreeCursor() = default;
TreeCursor::TreeCursor(const TreeCursor& other) : state_(std::make_unique<State>(*other.state_)) {}
TreeCursor& TreeCursor::operator=(const TreeCursor& other) {
  if (this != &other) state_ = std::make_unique<State>(*other.state_);
  return *this;
}
TreeCursor::TreeCursor(TreeCursor&&) noexcept = default;
TreeCursor& TreeCursor::operator=(TreeCursor&&) noexcept = default;

void TreeCursor::seek_data(Bytes position) { state_->seek_data(position); }

void TreeCursor::seek_offset(Bytes offset) { state_->seek_offset(offset); }

Bytes TreeCursor::data_position() const { return state_->position; }

Bytes TreeCursor::offset() const { return state_->group_offset + state_->within; }

bool TreeCursor::next(Bytes data_end, Bytes offset_end, Run& run) {
  State& s = *state_;
  if (s.position >= data_end || s.group_left == 0) return false;
  if (s.within == 0) {
    std::int64_t count = s.group_left;
    if (count * s.group_block > data_end - s.position) {
      count = (data_end - s.position) / s.group_block;
    }
    // Where the stride is not positive, offset_end is no limit or there is one block.
    if (s.group_offset + (count - 1) * s.group_stride + s.group_block > offset_end) {
      const Bytes room = offset_end - s.group_offset - s.group_block;
      count = room < 0 ? 0 : std::min(count, room / s.group_stride + 1);
    }
    if (count > 0) {
      run = {s.group_offset, s.group_block, s.group_stride, count};
      s.consume_blocks(count);
      return true;
    }
  }
  const Bytes start = s.group_offset + s.within;
  if (start >= offset_end) return false;
  Bytes length = std::min(s.group_block - s.within, data_end - s.position);
  if (start + length > offset_end) length = offset_end - start;
  run = {start, length, 0, 1};
  s.consume_bytes(length);
  return true;
}

bool TreeCursor::next(Bytes data_end, Run& run) {
  return next(data_end, std::numeric_limits<Bytes>::max(), run);
}

Bytes data_before(const TiledTree& tiled, Bytes offset) {
  const TreeShape& shape = *tiled.tree.shape_;
  const TilesOnTop top = make_top(tiled, tiled.tree.origin_, shape);
  if (top.node.size == 0 || offset <= top.base) return 0;
  if (offset >= top.base + top.node.upper) return top.node.size;
  return land_on_offset(shape, &top.node, top.base, offset,
                        [](const TreeNode*, std::int64_t, Bytes) {})
      .position;
}

}  // namespace forebay
