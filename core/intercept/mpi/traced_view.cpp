#include "core/intercept/mpi/traced_view.hpp"

#include <algorithm>

#include "core/plan/schedule.hpp"

namespace forebay {

void TracedView::set(const TiledTree& tiled, Bytes etype_size) {
  is_known_ = true;
  // A view without bytes has one place, where it begins.
  const bool is_empty = tiled.tree.size() == 0;
  etype_size_ = is_empty ? 0 : etype_size;
  etype_ = Divisor(std::max<Bytes>(etype_size_, 1));
  begin_ = tiled.displacement + tiled.tree.lower();
  offsets_.reset();
  if (!is_empty && !seamless(tiled)) offsets_.emplace(tiled);
}

}  // namespace forebay
