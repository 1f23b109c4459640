#include "core/model/data_offsets.hpp"

namespace forebay {

DataOffsets::DataOffsets(const TiledTree& tiled)
    : shape_(tiled.tree.shape_),
      top_(make_top(tiled, tiled.tree.origin_, *shape_)),
      rest_(&top_.node) {
  if (top_.node.size == 0) return;
  while (rest_ != nullptr) {
    const bool is_leaf = rest_->kind == NodeKind::run;
    if (!is_leaf && rest_->kind != NodeKind::strided) return;
    const TreeNode* child = is_leaf ? nullptr : &shape_->child(*rest_);
    if (rest_->count > 1) {
      steps_.push_back({Divisor(is_leaf ? rest_->block : child->size), rest_->stride});
    }
    rest_ = child;
  }
}

std::optional<Bytes> DataOffsets::at(Bytes position) const {
  if (position >= top_.node.size) return {};
  Bytes offset = top_.base;
  for (const Step& step : steps_) {
    const std::int64_t i = step.size.quotient(position);
    position -= i * step.size.value();
    offset += i * step.stride;
  }
  for (const TreeNode* node = rest_; node != nullptr;) {
    const std::int64_t i = entry_of_data(*shape_, *node, position);
    offset += entry_offset(*shape_, *node, i);
    node = node->is_leaf() ? nullptr : &shape_->child(*node, i);
  }
  return offset + position;
}

}  // namespace forebay
