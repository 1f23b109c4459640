#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/model/extent.hpp"
#include "core/model/strided_tree.hpp"

namespace forebay {

// The inside of StridedTree: known to the builder, the cursor, DataOffsets and the wire form only.

/// Wide enough for any sum or product of two offsets.
__extension__ using Wide = __int128;

/// No tree selects more bytes than this, spans more, or lies further from offset 0.
constexpr Bytes max_tree_bytes = Bytes{1} << 62;

/// No tree is deeper. A node that repeats a child at least doubles the size, which max_tree_bytes
/// allows 62 times, and a sequence is never the direct child of a sequence.
constexpr int max_tree_depth = 128;

/// The numeric values are those of the wire form.
enum class NodeKind : std::uint8_t {
  run = 1,           ///< `count` blocks, `stride` apart; count == 1 is the contiguous node.
  equal_blocks = 2,  ///< `count` blocks of `block` bytes at offsets of their own.
  blocks = 3,        ///< `count` blocks, offsets and lengths of their own.
  strided = 4,       ///< `count` copies of `child`, `stride` apart.
  indexed = 5,       ///< `count` copies of `child` at offsets of their own.
  sequence = 6,      ///< `count` different children at offsets of their own.
};

/// One node. Every node is normalised so that its first byte in type-map order lies at 0: trees of
/// one shape are equal wherever they lie, and a monotone node has lower == 0.
struct TreeNode {
  NodeKind kind = NodeKind::run;
  bool monotone = true;
  std::int32_t depth = 1;   ///< Nodes on the longest path down, this one included.
  std::int32_t child = -1;  ///< strided, indexed: index of the child.
  std::int64_t count = 0;
  Bytes stride = 0;        ///< run (0 if count == 1), strided.
  Bytes block = 0;         ///< run, equal_blocks.
  std::int64_t table = 0;  ///< Where the node's numbers start in TreeShape::table.
  Bytes size = 0;
  Bytes lower = 0;
  Bytes upper = 0;
  std::int64_t pieces = 0;

  bool operator==(const TreeNode&) const = default;

  bool is_leaf() const { return kind <= NodeKind::blocks; }
};

/// A tree without its place: nodes in post-order, the root last; none if the tree is empty.
/// The numbers of a node, one array behind the other in `table`:
///   equal_blocks, indexed: offsets[count]
///   blocks:                offsets[count], prefix[count + 1]
///   sequence:              offsets[count], prefix[count + 1], child index[count]
/// where prefix[i] is the data bytes before entry i.
struct TreeShape {
  std::vector<TreeNode> nodes;
  std::vector<Bytes> table;

  const TreeNode& root() const { return nodes.back(); }
  bool empty() const { return nodes.empty(); }
  const Bytes* offsets(const TreeNode& node) const { return table.data() + node.table; }
  const Bytes* prefix(const TreeNode& node) const { return offsets(node) + node.count; }
  const Bytes* children(const TreeNode& node) const { return prefix(node) + node.count + 1; }
  const TreeNode& child(const TreeNode& node) const { return nodes[node.child]; }
  const TreeNode& child(const TreeNode& node, std::int64_t i) const {
    return nodes[node.kind == NodeKind::sequence ? children(node)[i] : node.child];
  }
  bool same(const TreeShape& other) const {
    return this == &other || (nodes == other.nodes && table == other.table);
  }

  /// XXH3 of the wire form of the shape; computed when first asked for, 0 before.
  mutable std::atomic<std::uint64_t> hash{0};
};

/// Fills in what follows from a node's own fields and its children: size, bounds, pieces, depth,
/// monotone. False if a limit is exceeded.
bool complete_node(const TreeShape& shape, TreeNode& node);

/// Canonical trees, or nothing where a limit would be exceeded. StridedTree's builders assert that
/// there is something; the parser of the wire form reports an error.
class TreeBuilder {
 public:
  using Maybe = std::optional<StridedTree>;

  static Maybe contiguous(Bytes length);
  static Maybe strided(std::int64_t count, Bytes stride, const StridedTree& child);
  static Maybe indexed(std::span<const Bytes> offsets, std::span<const Bytes> lengths);
  static Maybe indexed(std::span<const Bytes> offsets, const StridedTree& child);
  static Maybe sequence(std::vector<StridedTree::Placed> children);
  static Maybe shifted(const StridedTree& tree, Bytes offset);

  static Bytes origin(const StridedTree& tree) { return tree.origin_; }
  static const TreeShape& shape(const StridedTree& tree) { return *tree.shape_; }

 private:
  static Maybe place(std::span<const Bytes> offsets, const StridedTree& child);
  static Maybe place_sequence(std::span<const StridedTree::Placed> children);
  static Maybe finish(Bytes origin, std::shared_ptr<TreeShape> shape, TreeNode root);
  static bool merge_equal(std::vector<StridedTree::Placed>& items);
  static bool splice_sequences(std::vector<StridedTree::Placed>& items);
  static bool merge_blocks(std::vector<StridedTree::Placed>& items);
  static bool merge_runs(std::vector<StridedTree::Placed>& items);
  static StridedTree subtree(Bytes origin, const TreeShape& shape, const TreeNode& root);
};

}  // namespace forebay
