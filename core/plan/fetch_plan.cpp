#include "core/plan/fetch_plan.hpp"

#include <algorithm>
#include <cassert>

namespace forebay {

FetchPlan::FetchPlan(const std::vector<Extent>& extents, Bytes file_size, Bytes block)
    : block_(block) {
  assert(block > 0 && block % direct_alignment == 0);
  for (const Extent& given : extents) {
    if (given.offset < 0 || given.length < 0 || given.offset >= file_size) {
      ++outside_;
      continue;
    }
    const Bytes rest = file_size - given.offset;
    const Extent wanted{given.offset, given.length == 0 ? rest : std::min(given.length, rest)};
    if (!extents_.empty()) {
      Extent& last = extents_.back();
      const bool touches =
          wanted.offset >= last.offset && transfer_of(wanted).offset <= transfer_of(last).end();
      if (touches) {
        last = hull(last, wanted);
        continue;
      }
    }
    extents_.push_back(wanted);
  }
  for (const Extent& extent : extents_) bytes_ += extent.length;
}

std::optional<Extent> FetchPlan::next() {
  if (at_end()) return std::nullopt;
  const Extent& whole = extents_[current_];
  const Bytes from = whole.offset + cut_;
  const Bytes block_end = round_down(from, direct_alignment) + block_;
  const Extent piece{from, std::min(whole.end(), block_end) - from};
  cut_ += piece.length;
  if (cut_ == whole.length) {
    ++current_;
    cut_ = 0;
  }
  return piece;
}

bool FetchPlan::seek(Bytes offset) {
  for (std::size_t step = 0; step < extents_.size(); ++step) {
    const std::size_t candidate = (current_ + step) % extents_.size();
    const Extent& extent = extents_[candidate];
    if (offset < extent.offset || offset >= extent.end()) continue;
    current_ = candidate;
    cut_ = offset - extent.offset;
    return true;
  }
  return false;
}

bool FetchPlan::covers(Bytes offset) const {
  return std::ranges::any_of(extents_, [offset](const Extent& extent) {
    return offset >= extent.offset && offset < extent.end();
  });
}

}  // namespace forebay
