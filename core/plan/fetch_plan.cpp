#include "core/plan/fetch_plan.hpp"

#include <algorithm>
#include <cassert>
#include <utility>

namespace forebay {

Extent in_file(Extent written, Bytes file_size) {
  if (written.offset < 0 || written.length < 0 || written.offset >= file_size) return {};
  const Bytes rest = file_size - written.offset;
  return {written.offset, written.length == 0 ? rest : std::min(written.length, rest)};
}

FetchPlan::FetchPlan(const std::vector<Extent>& extents, Bytes file_size) {
  std::vector<Extent> declared;
  declared.reserve(extents.size());
  for (const Extent& given : extents) {
    const Extent wanted = in_file(given, file_size);
    if (wanted.empty()) {
      ++outside_;
      continue;
    }
    declared.push_back(wanted);
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
  declared_ = ExtentSet(std::move(declared));
}

std::optional<FetchPiece> FetchPlan::next(const RequestShape& shape) {
  assert(shape.most > 0 && shape.most % direct_alignment == 0);
  if (at_end()) return std::nullopt;
  const Extent& whole = extents_[current_];
  const Bytes from = whole.offset + cut_;
  const Bytes most_end = round_down(from, direct_alignment) + shape.most;
  const Extent first{from, std::min(whole.end(), most_end) - from};
  FetchPiece piece({first, place_of(current_, cut_)});
  cut_ += first.length;
  if (cut_ < whole.length) return piece;
  advance();
  if (!shape.gap) return piece;
  while (join_one(piece, shape.most, *shape.gap)) {
  }
  return piece;
}

/// To the next extent that is in no piece.
void FetchPlan::advance() {
  cut_ = 0;
  do {
    ++current_;
  } while (std::erase(taken_, current_) > 0);
}

bool FetchPlan::join_one(FetchPiece& piece, Bytes most, Bytes gap) {
  const std::size_t end = std::min(current_ + window, extents_.size());
  for (std::size_t index = current_; index < end; ++index) {
    if (std::ranges::find(taken_, index) != taken_.end()) continue;
    const auto transfer = piece.transfer_with(extents_[index], gap);
    if (!transfer || transfer->length > most) continue;
    piece.add({extents_[index], place_of(index, 0)});
    if (index == current_) {
      advance();
    } else {
      taken_.push_back(index);
    }
    return true;
  }
  return false;
}

ReadingPlace FetchPlan::place_of(std::size_t index, Bytes at) const {
  return {first_place_ + laps_ * extents_.size() + index, at};
}

bool FetchPlan::seek(Extent read) {
  for (std::size_t step = 0; step < extents_.size(); ++step) {
    const std::size_t candidate = (current_ + step) % extents_.size();
    const Extent found = intersect(extents_[candidate], read);
    if (found.empty()) continue;
    current_ = candidate;
    cut_ = found.offset - extents_[candidate].offset;
    taken_.clear();
    ++laps_;
    return true;
  }
  return false;
}

void FetchPlan::go_to(const ReadingPlace& position) {
  current_ = std::min(static_cast<std::size_t>(position.extent), extents_.size());
  cut_ = at_end() ? 0 : position.at;
  taken_.clear();
}

bool FetchPlan::end_before(Bytes offset) {
  for (std::size_t index = current_; index < extents_.size(); ++index) {
    const Extent& extent = extents_[index];
    const Bytes kept = offset - extent.offset;
    if (kept < 0 || offset >= extent.end() || (index == current_ && kept <= cut_)) continue;
    const std::size_t before = extents_.size();
    const std::size_t taken = taken_.empty() ? 0 : std::ranges::max(taken_) + 1;
    if (taken > index) {
      extents_.resize(taken);
    } else {
      extents_.resize(index + (kept > 0 ? 1 : 0));
      if (kept > 0) extents_.back().length = kept;
    }
    first_place_ += laps_ * (before - extents_.size());  // Those given out stay as they are.
    bytes_ = 0;
    for (const Extent& left : extents_) bytes_ += left.length;
    return true;
  }
  return false;
}

bool FetchPlan::covers(Extent read) const {
  return std::ranges::any_of(
      extents_, [read](const Extent& extent) { return !intersect(extent, read).empty(); });
}

bool FetchPlan::lies_between(Extent read) const {
  return read.length < most_between && declared_.overlap(read) == 0 &&
         declared_.overlap({read.offset - most_between, most_between}) > 0 &&
         declared_.overlap({read.end(), most_between}) > 0;
}

bool FetchPlan::lies_ahead(Extent read) const {
  for (std::size_t index = current_; index < extents_.size(); ++index) {
    Extent extent = extents_[index];
    if (index == current_) extent = {extent.offset + cut_, extent.length - cut_};
    const bool is_taken = std::ranges::find(taken_, index) != taken_.end();
    if (!is_taken && !intersect(extent, read).empty()) return true;
  }
  return false;
}

std::vector<Extent> FetchPlan::coming(std::size_t most) const {
  const auto from = extents_.begin() + static_cast<std::ptrdiff_t>(current_);
  return {from, from + static_cast<std::ptrdiff_t>(std::min(most, extents_.size() - current_))};
}

}  // namespace forebay
