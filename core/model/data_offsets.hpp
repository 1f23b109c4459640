#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "core/model/divisor.hpp"
#include "core/model/extent.hpp"
#include "core/model/strided_tree.hpp"
#include "core/model/tiles_on_top.hpp"

namespace forebay {

/// Where the data bytes of a tiled tree lie, for who asks for single ones again and again, in any
/// order. What can be worked out beforehand is; an answer takes no memory and, where the tree has
/// strides alone, no division. Shares the tree's nodes. By any thread.
class DataOffsets {
 public:
  explicit DataOffsets(const TiledTree& tiled);
  // The rest may be the top.
  DataOffsets(const DataOffsets&) = delete;
  DataOffsets& operator=(const DataOffsets&) = delete;

  /// The offset of data byte `position` >= 0. None: the tree is empty, or it lies beyond 2^62.
  std::optional<Bytes> at(Bytes position) const;

 private:
  /// A node whose entries have equal sizes and distances.
  struct Step {
    Divisor size;  ///< Data bytes of an entry.
    Bytes stride;
  };

  std::shared_ptr<const TreeShape> shape_;
  TilesOnTop top_;
  std::vector<Step> steps_;         ///< From the top down.
  const TreeNode* rest_ = nullptr;  ///< The node below them; null: nothing but one block.
};

}  // namespace forebay
