#include "core/intercept/mpi/traced_view.hpp"

#include <utility>

#include "core/plan/schedule.hpp"

namespace forebay {

void TracedView::set(std::optional<FileView> view) {
  const std::lock_guard lock(mutex_);
  is_known_ = view.has_value();
  cursor_.reset();
  if (!is_known_) return;
  view_ = std::move(*view);
  const TiledTree& tiled = view_.tiled();
  is_dense_ = seamless(tiled);
  begin_ = tiled.displacement + tiled.tree.lower();
}

std::int64_t TracedView::byte_offset(std::int64_t position) {
  if (!is_known_ || position < 0) return -1;
  const auto data = view_.position_of(position);
  if (!data) return -1;
  if (is_dense_) {
    Bytes offset = 0;
    return __builtin_add_overflow(begin_, *data, &offset) ? -1 : offset;
  }
  return view_.reaches(*data, 1) ? sought(*data) : -1;
}

std::int64_t TracedView::sought(Bytes data) {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock() || view_.tiled().tree.size() == 0) return view_.byte_offset(data);
  if (!cursor_) cursor_.emplace(view_.tiled());
  cursor_->seek_data(data);
  return cursor_->offset();
}

}  // namespace forebay
