#include "core/model/strided_tree.hpp"

#include <cassert>
#include <optional>
#include <utility>

#include "core/model/strided_tree_nodes.hpp"

namespace forebay {
namespace {

const std::shared_ptr<const TreeShape>& empty_shape() {
  static const auto shape = std::make_shared<const TreeShape>();
  return shape;
}

StridedTree within_limits(std::optional<StridedTree> tree) {
  assert(tree && "a datatype that spans more than 2^62 bytes");
  return *std::move(tree);
}

}  // namespace

StridedTree::StridedTree() : shape_(empty_shape()) {}

StridedTree::StridedTree(Bytes origin, std::shared_ptr<const TreeShape> shape)
    : origin_(origin), shape_(std::move(shape)) {}

StridedTree StridedTree::contiguous(Bytes length) {
  assert(length >= 0);
  return within_limits(TreeBuilder::contiguous(length));
}

StridedTree StridedTree::strided(std::int64_t count, Bytes stride, const StridedTree& child) {
  assert(count >= 0);
  return within_limits(TreeBuilder::strided(count, stride, child));
}

StridedTree StridedTree::indexed(std::span<const Bytes> offsets, std::span<const Bytes> lengths) {
  assert(offsets.size() == lengths.size());
  return within_limits(TreeBuilder::indexed(offsets, lengths));
}

StridedTree StridedTree::indexed(std::span<const Bytes> offsets, const StridedTree& child) {
  return within_limits(TreeBuilder::indexed(offsets, child));
}

StridedTree StridedTree::sequence(std::span<const Placed> children) {
  return within_limits(TreeBuilder::sequence({children.begin(), children.end()}));
}

StridedTree StridedTree::shifted(Bytes offset) const {
  return within_limits(TreeBuilder::shifted(*this, offset));
}

Bytes StridedTree::size() const { return shape_->empty() ? 0 : shape_->root().size; }

Bytes StridedTree::lower() const { return shape_->empty() ? 0 : origin_ + shape_->root().lower; }

Bytes StridedTree::upper() const { return shape_->empty() ? 0 : origin_ + shape_->root().upper; }

std::int64_t StridedTree::pieces() const { return shape_->empty() ? 0 : shape_->root().pieces; }

bool StridedTree::monotone() const { return shape_->empty() || shape_->root().monotone; }

bool StridedTree::dense() const { return monotone() && size() == upper() - lower(); }

bool StridedTree::operator==(const StridedTree& other) const {
  return origin_ == other.origin_ && shape_->same(*other.shape_);
}

std::size_t StridedTree::memory_bytes() const {
  return sizeof(*this) + sizeof(TreeShape) + shape_->nodes.capacity() * sizeof(TreeNode) +
         shape_->table.capacity() * sizeof(Bytes);
}

bool TiledTree::monotone() const {
  if (tree.size() == 0) return true;
  return tree.monotone() && extent > 0 && extent >= tree.upper() - tree.lower();
}

bool complete_node(const TreeShape& shape, TreeNode& node) {
  Wide size = 0;
  Wide lower = 0;
  Wide upper = 0;
  Wide pieces = 0;
  bool monotone = true;
  const auto place = [&](Wide offset, Bytes low, Bytes high) {
    lower = std::min(lower, offset + low);
    upper = std::max(upper, offset + high);
  };
  switch (node.kind) {
    case NodeKind::run:
      size = Wide{node.count} * node.block;
      pieces = node.count;
      place(0, 0, node.block);
      place(Wide{node.count - 1} * node.stride, 0, node.block);
      monotone = node.count == 1 || node.stride >= node.block;
      node.depth = 1;
      break;
    case NodeKind::equal_blocks:
    case NodeKind::blocks: {
      const Bytes* offsets = shape.offsets(node);
      const Bytes* prefix = node.kind == NodeKind::blocks ? shape.prefix(node) : nullptr;
      Wide end = 0;
      for (std::int64_t i = 0; i < node.count; ++i) {
        const Bytes length = prefix != nullptr ? prefix[i + 1] - prefix[i] : node.block;
        place(offsets[i], 0, length);
        monotone = monotone && offsets[i] >= end;
        end = Wide{offsets[i]} + length;
      }
      size = prefix != nullptr ? Wide{prefix[node.count]} : Wide{node.count} * node.block;
      pieces = node.count;
      node.depth = 1;
      break;
    }
    case NodeKind::strided:
    case NodeKind::indexed: {
      const TreeNode& child = shape.child(node);
      const Bytes span = child.upper - child.lower;
      size = Wide{node.count} * child.size;
      pieces = Wide{node.count} * child.pieces;
      monotone = child.monotone;
      if (node.kind == NodeKind::strided) {
        place(0, child.lower, child.upper);
        place(Wide{node.count - 1} * node.stride, child.lower, child.upper);
        monotone = monotone && node.stride >= span;
      } else {
        const Bytes* offsets = shape.offsets(node);
        for (std::int64_t i = 0; i < node.count; ++i) {
          place(offsets[i], child.lower, child.upper);
          monotone = monotone && (i == 0 || Wide{offsets[i]} - offsets[i - 1] >= span);
        }
      }
      node.depth = child.depth + 1;
      break;
    }
    case NodeKind::sequence: {
      const Bytes* offsets = shape.offsets(node);
      Wide end = 0;
      node.depth = 1;
      for (std::int64_t i = 0; i < node.count; ++i) {
        const TreeNode& child = shape.child(node, i);
        place(offsets[i], child.lower, child.upper);
        size += child.size;
        pieces += child.pieces;
        monotone = monotone && child.monotone && offsets[i] >= end;
        end = Wide{offsets[i]} + child.upper;
        node.depth = std::max(node.depth, child.depth + 1);
      }
      break;
    }
  }
  if (size > max_tree_bytes || upper - lower > max_tree_bytes || node.depth > max_tree_depth) {
    return false;
  }
  node.size = static_cast<Bytes>(size);
  node.lower = static_cast<Bytes>(lower);
  node.upper = static_cast<Bytes>(upper);
  node.pieces = static_cast<std::int64_t>(pieces);
  node.monotone = monotone;
  return true;
}

}  // namespace forebay
