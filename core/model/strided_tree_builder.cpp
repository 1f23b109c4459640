#include <algorithm>
#include <cassert>
#include <utility>

#include "core/model/strided_tree_nodes.hpp"

// Canonical form is a fixed point: building a node again from its own fields and children gives the
// same node. The parser of the wire form relies on it to reject what serialize() cannot produce.

namespace forebay {
namespace {

using Placed = StridedTree::Placed;

bool fits(Wide value) { return value >= -max_tree_bytes && value <= max_tree_bytes; }

/// Appends the subtree of `node` to `to`, in post-order; returns the index of its root there.
std::int32_t append_subtree(const TreeShape& from, TreeNode node, TreeShape& to) {
  std::vector<Bytes> children;
  std::int64_t numbers = 0;
  switch (node.kind) {
    case NodeKind::run:
      break;
    case NodeKind::equal_blocks:
      numbers = node.count;
      break;
    case NodeKind::blocks:
      numbers = 2 * node.count + 1;
      break;
    case NodeKind::strided:
      node.child = append_subtree(from, from.child(node), to);
      break;
    case NodeKind::indexed:
      node.child = append_subtree(from, from.child(node), to);
      numbers = node.count;
      break;
    case NodeKind::sequence:
      for (std::int64_t i = 0; i < node.count; ++i) {
        children.push_back(append_subtree(from, from.child(node, i), to));
      }
      numbers = 2 * node.count + 1;
      break;
  }
  if (numbers > 0) {
    const Bytes* table = from.offsets(node);
    node.table = static_cast<std::int64_t>(to.table.size());
    to.table.insert(to.table.end(), table, table + numbers);
    to.table.insert(to.table.end(), children.begin(), children.end());
  }
  to.nodes.push_back(node);
  return static_cast<std::int32_t>(to.nodes.size() - 1);
}

/// A leaf that is a list of blocks: neighbours of this kind in a sequence become one list.
bool lists_blocks(const TreeNode& node) {
  return node.is_leaf() && (node.kind != NodeKind::run || node.count == 1);
}

/// Copies i and i + 1 start `offsets[1] - offsets[0]` apart for all i < the result.
std::size_t equally_spaced(std::span<const Bytes> offsets) {
  std::size_t count = std::min<std::size_t>(offsets.size(), 2);
  while (count < offsets.size() && offsets[count] - offsets[count - 1] == offsets[1] - offsets[0]) {
    ++count;
  }
  return count;
}

/// The list is rows of `columns` entries, all rows spaced like the first.
bool has_rows(std::span<const Bytes> offsets, std::size_t columns) {
  if (columns < 2 || offsets.size() % columns != 0) return false;
  for (std::size_t row = columns; row < offsets.size(); row += columns) {
    for (std::size_t i = 1; i < columns; ++i) {
      if (offsets[row + i] - offsets[row] != offsets[i] - offsets[0]) return false;
    }
  }
  return true;
}

}  // namespace

TreeBuilder::Maybe TreeBuilder::finish(Bytes origin, std::shared_ptr<TreeShape> shape,
                                       TreeNode root) {
  if (!complete_node(*shape, root)) return std::nullopt;
  if (!fits(Wide{origin} + root.lower) || !fits(Wide{origin} + root.upper)) return std::nullopt;
  shape->nodes.push_back(root);
  return StridedTree(origin, std::move(shape));
}

TreeBuilder::Maybe TreeBuilder::contiguous(Bytes length) {
  if (length == 0) return StridedTree();
  TreeNode node;
  node.kind = NodeKind::run;
  node.count = 1;
  node.block = length;
  return finish(0, std::make_shared<TreeShape>(), node);
}

TreeBuilder::Maybe TreeBuilder::shifted(const StridedTree& tree, Bytes offset) {
  if (tree.shape_->empty()) return tree;
  const TreeNode& root = tree.shape_->root();
  const Wide origin = Wide{tree.origin_} + offset;
  if (!fits(origin + root.lower) || !fits(origin + root.upper)) return std::nullopt;
  return StridedTree(static_cast<Bytes>(origin), tree.shape_);
}

TreeBuilder::Maybe TreeBuilder::strided(std::int64_t count, Bytes stride,
                                        const StridedTree& child) {
  if (count == 0 || child.shape_->empty()) return StridedTree();
  if (count == 1) return child;
  const TreeNode& root = child.shape_->root();
  if (!fits(Wide{count - 1} * stride) || !fits(Wide{count} * root.size)) return std::nullopt;

  auto shape = std::make_shared<TreeShape>();
  const bool leaf = root.kind == NodeKind::run;
  const bool continues = (leaf || root.kind == NodeKind::strided) && root.count > 1 &&
                         Wide{root.stride} * root.count == Wide{stride};
  TreeNode node;
  if (continues) {  // One stride instead of a stride over a stride.
    node = root;
    node.count *= count;
  } else if (leaf && root.count == 1) {
    node = root;
    if (stride == root.block) {  // Side by side.
      node.block *= count;
    } else {
      node.count = count;
      node.stride = stride;
    }
  } else {
    node.kind = NodeKind::strided;
    node.count = count;
    node.stride = stride;
    node.child = static_cast<std::int32_t>(child.shape_->nodes.size() - 1);
  }
  if (node.kind == NodeKind::strided) {
    shape->nodes.reserve(child.shape_->nodes.size() + 1);
    shape->nodes = child.shape_->nodes;
    shape->table = child.shape_->table;
    if (continues) shape->nodes.pop_back();
  }
  return finish(child.origin_, std::move(shape), node);
}

TreeBuilder::Maybe TreeBuilder::indexed(std::span<const Bytes> offsets,
                                        std::span<const Bytes> lengths) {
  std::vector<Bytes> starts;
  std::vector<Bytes> sizes;
  starts.reserve(offsets.size());
  sizes.reserve(offsets.size());
  bool equal = true;
  for (std::size_t i = 0; i < offsets.size(); ++i) {
    if (lengths[i] == 0) continue;
    if (lengths[i] < 0 || !fits(offsets[i]) || !fits(Wide{offsets[i]} + lengths[i])) {
      return std::nullopt;
    }
    if (!starts.empty() && offsets[i] == starts.back() + sizes.back()) {
      sizes.back() += lengths[i];
    } else {
      starts.push_back(offsets[i]);
      sizes.push_back(lengths[i]);
    }
  }
  for (const Bytes size : sizes) equal = equal && size == sizes.front();
  if (starts.empty()) return StridedTree();
  if (equal) {
    const Maybe block = contiguous(sizes.front());
    return block ? place(starts, *block) : std::nullopt;
  }

  auto shape = std::make_shared<TreeShape>();
  TreeNode node;
  node.kind = NodeKind::blocks;
  node.count = static_cast<std::int64_t>(starts.size());
  shape->table.reserve(2 * starts.size() + 1);
  for (const Bytes start : starts) {
    if (!fits(Wide{start} - starts.front())) return std::nullopt;
    shape->table.push_back(start - starts.front());
  }
  Wide before = 0;
  for (const Bytes size : sizes) {
    shape->table.push_back(static_cast<Bytes>(before));
    before += size;
    if (!fits(before)) return std::nullopt;
  }
  shape->table.push_back(static_cast<Bytes>(before));
  return finish(starts.front(), std::move(shape), node);
}

TreeBuilder::Maybe TreeBuilder::indexed(std::span<const Bytes> offsets, const StridedTree& child) {
  if (child.shape_->empty() || offsets.empty()) return StridedTree();
  const TreeNode& root = child.shape_->root();
  std::vector<Bytes> starts;
  starts.reserve(offsets.size());
  for (const Bytes offset : offsets) {
    const Wide start = Wide{offset} + child.origin_;
    if (!fits(start + root.lower) || !fits(start + root.upper)) return std::nullopt;
    starts.push_back(static_cast<Bytes>(start));
  }
  if (root.kind == NodeKind::run && root.count == 1) {
    return indexed(starts, std::vector<Bytes>(starts.size(), root.block));
  }
  return place(starts, child);
}

/// Copies of child's shape whose first bytes lie at `offsets`; child's own place does not matter.
TreeBuilder::Maybe TreeBuilder::place(std::span<const Bytes> offsets, const StridedTree& child) {
  const StridedTree base(0, child.shape_);
  const auto [low, high] = std::minmax_element(offsets.begin(), offsets.end());
  if (!fits(Wide{*high} - *low)) return std::nullopt;
  if (offsets.size() == 1) return shifted(base, offsets[0]);
  const std::size_t columns = equally_spaced(offsets);
  if (columns == offsets.size()) {
    const Maybe all = strided(static_cast<std::int64_t>(columns), offsets[1] - offsets[0], base);
    return all ? shifted(*all, offsets[0]) : std::nullopt;
  }
  if (has_rows(offsets, columns)) {
    const Maybe row = strided(static_cast<std::int64_t>(columns), offsets[1] - offsets[0], base);
    if (!row) return std::nullopt;
    std::vector<Bytes> rows;
    for (std::size_t i = 0; i < offsets.size(); i += columns) rows.push_back(offsets[i]);
    return place(rows, *row);
  }

  auto shape = std::make_shared<TreeShape>();
  const TreeNode& root = child.shape_->root();
  TreeNode node;
  node.count = static_cast<std::int64_t>(offsets.size());
  if (root.kind == NodeKind::run && root.count == 1) {
    node.kind = NodeKind::equal_blocks;
    node.block = root.block;
  } else {
    shape->nodes.reserve(child.shape_->nodes.size() + 1);
    shape->nodes = child.shape_->nodes;
    shape->table.reserve(child.shape_->table.size() + offsets.size());
    shape->table = child.shape_->table;
    node.kind = NodeKind::indexed;
    node.child = static_cast<std::int32_t>(shape->nodes.size() - 1);
  }
  node.table = static_cast<std::int64_t>(shape->table.size());
  for (const Bytes offset : offsets) shape->table.push_back(offset - offsets[0]);
  return finish(offsets[0], std::move(shape), node);
}

StridedTree TreeBuilder::subtree(Bytes origin, const TreeShape& shape, const TreeNode& root) {
  auto part = std::make_shared<TreeShape>();
  append_subtree(shape, root, *part);
  return StridedTree(origin, std::move(part));
}

// The passes over the items of a sequence. Each returns whether it changed anything. None can
// exceed a limit: the items as a whole were found to be within the limits before.

/// Neighbours of the same shape become copies of one.
bool TreeBuilder::merge_equal(std::vector<Placed>& items) {
  std::vector<Placed> merged;
  for (std::size_t i = 0; i < items.size();) {
    std::vector<Bytes> offsets{items[i].tree.origin_};
    std::size_t next = i + 1;
    while (next < items.size() && items[next].tree.shape_->same(*items[i].tree.shape_)) {
      offsets.push_back(items[next++].tree.origin_);
    }
    if (next == i + 1) {
      merged.push_back(std::move(items[i]));
    } else {
      Maybe copies = indexed(offsets, StridedTree(0, items[i].tree.shape_));
      assert(copies);
      merged.push_back({0, *std::move(copies)});
    }
    i = next;
  }
  const bool changed = merged.size() < items.size();
  items = std::move(merged);
  return changed;
}

/// A sequence in a sequence gives its children up.
bool TreeBuilder::splice_sequences(std::vector<Placed>& items) {
  std::vector<Placed> flat;
  for (Placed& item : items) {
    const TreeShape& shape = *item.tree.shape_;
    const TreeNode& root = shape.root();
    if (root.kind != NodeKind::sequence) {
      flat.push_back(std::move(item));
      continue;
    }
    for (std::int64_t i = 0; i < root.count; ++i) {
      flat.push_back(
          {0, subtree(item.tree.origin_ + shape.offsets(root)[i], shape, shape.child(root, i))});
    }
  }
  const bool changed = flat.size() > items.size();
  items = std::move(flat);
  return changed;
}

/// Neighbours that are lists of blocks become one list.
bool TreeBuilder::merge_blocks(std::vector<Placed>& items) {
  std::vector<Placed> merged;
  for (std::size_t i = 0; i < items.size();) {
    std::size_t next = i;
    while (next < items.size() && lists_blocks(items[next].tree.shape_->root())) ++next;
    if (next <= i + 1) {
      merged.push_back(std::move(items[i++]));
      continue;
    }
    std::vector<Bytes> offsets;
    std::vector<Bytes> lengths;
    for (; i < next; ++i) {
      const Bytes origin = items[i].tree.origin_;
      const TreeShape& shape = *items[i].tree.shape_;
      const TreeNode& root = shape.root();
      for (std::int64_t k = 0; k < root.count; ++k) {
        offsets.push_back(origin + (root.kind == NodeKind::run ? 0 : shape.offsets(root)[k]));
        lengths.push_back(root.kind == NodeKind::blocks
                              ? shape.prefix(root)[k + 1] - shape.prefix(root)[k]
                              : root.block);
      }
    }
    Maybe list = indexed(offsets, lengths);
    assert(list);
    merged.push_back({0, *std::move(list)});
  }
  const bool changed = merged.size() < items.size();
  items = std::move(merged);
  return changed;
}

/// A run that continues the run before it becomes part of it.
bool TreeBuilder::merge_runs(std::vector<Placed>& items) {
  std::vector<Placed> merged;
  for (Placed& item : items) {
    const TreeNode& root = item.tree.shape_->root();
    if (!merged.empty() && root.kind == NodeKind::run && root.count > 1) {
      StridedTree& last = merged.back().tree;
      TreeNode joined = last.shape_->root();
      if (joined.kind == NodeKind::run && joined.count > 1 && joined.block == root.block &&
          joined.stride == root.stride &&
          Wide{last.origin_} + Wide{joined.stride} * joined.count == Wide{item.tree.origin_}) {
        joined.count += root.count;
        Maybe run = finish(last.origin_, std::make_shared<TreeShape>(), joined);
        assert(run);
        last = *std::move(run);
        continue;
      }
    }
    merged.push_back(std::move(item));
  }
  const bool changed = merged.size() < items.size();
  items = std::move(merged);
  return changed;
}

TreeBuilder::Maybe TreeBuilder::sequence(std::vector<Placed> items) {
  std::erase_if(items, [](const Placed& item) { return item.tree.shape_->empty(); });
  Wide size = 0;
  Wide lower = max_tree_bytes;
  Wide upper = -max_tree_bytes;
  for (Placed& item : items) {  // From here on an item's offset is 0 and its tree is in place.
    Maybe moved = shifted(item.tree, item.offset);
    if (!moved) return std::nullopt;
    item = {0, *std::move(moved)};
    size += item.tree.size();
    lower = std::min<Wide>(lower, item.tree.lower());
    upper = std::max<Wide>(upper, item.tree.upper());
  }
  if (items.empty()) return StridedTree();
  if (size > max_tree_bytes || upper - lower > max_tree_bytes) return std::nullopt;

  // Splicing happens once, since no merge makes a sequence; every other change leaves fewer items.
  // A chain of merges that feed each other is short, since every merge doubles what it merges.
  bool changed = true;
  while (changed) {
    changed = merge_equal(items);
    changed = splice_sequences(items) || changed;
    changed = merge_blocks(items) || changed;
    changed = merge_runs(items) || changed;
  }
  if (items.size() == 1) return items.front().tree;
  return place_sequence(items);
}

TreeBuilder::Maybe TreeBuilder::place_sequence(std::span<const Placed> items) {
  auto shape = std::make_shared<TreeShape>();
  TreeNode node;
  node.kind = NodeKind::sequence;
  node.count = static_cast<std::int64_t>(items.size());
  const Bytes origin = items.front().tree.origin_;
  std::vector<Bytes> children;
  for (const Placed& item : items) {
    children.push_back(append_subtree(*item.tree.shape_, item.tree.shape_->root(), *shape));
  }
  node.table = static_cast<std::int64_t>(shape->table.size());
  for (const Placed& item : items) shape->table.push_back(item.tree.origin_ - origin);
  Bytes before = 0;
  for (const Placed& item : items) {
    shape->table.push_back(before);
    before += item.tree.size();
  }
  shape->table.push_back(before);
  shape->table.insert(shape->table.end(), children.begin(), children.end());
  return finish(origin, std::move(shape), node);
}

}  // namespace forebay
