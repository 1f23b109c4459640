#include "core/plan/fetch_piece.hpp"

#include <algorithm>

namespace forebay {

Bytes FetchPiece::needed() const {
  Bytes sum = 0;
  for (const Part& part : parts_) sum += part.extent.length;
  return sum;
}

std::vector<Extent> FetchPiece::between() const {
  std::vector<Extent> result;
  for (std::size_t i = 1; i < parts_.size(); ++i) {
    const Bytes from = parts_[i - 1].extent.end();
    if (from < parts_[i].extent.offset) result.push_back({from, parts_[i].extent.offset - from});
  }
  return result;
}

ReadingPlace FetchPiece::last() const { return std::ranges::max(parts_, {}, &Part::place).place; }

bool FetchPiece::touches(Extent extent) const {
  return std::ranges::any_of(
      parts_, [&](const Part& part) { return !intersect(part.extent, extent).empty(); });
}

std::optional<Extent> FetchPiece::transfer_with(Extent extent, Bytes gap) const {
  const Extent transfer = transfer_of(extent);
  const bool shares = std::ranges::any_of(parts_, [&](const Part& part) {
    return !intersect(transfer_of(part.extent), transfer).empty();
  });
  if (shares) return std::nullopt;
  const Extent held = transfer_of(hull_);
  if (transfer.offset - held.end() > gap || held.offset - transfer.end() > gap) return std::nullopt;
  return forebay::hull(held, transfer);
}

void FetchPiece::add(const Part& part) {
  const auto after = std::ranges::find_if(
      parts_, [&](const Part& known) { return known.extent.offset > part.extent.offset; });
  parts_.insert(after, part);
  set_hull();
}

bool FetchPiece::take_out(Extent read) {
  std::erase_if(parts_, [&](const Part& part) {
    return part.extent.offset >= read.offset && part.extent.end() <= read.end();
  });
  for (Part& part : parts_) {
    if (part.extent.offset < read.offset || part.extent.offset >= read.end()) continue;
    const Bytes taken = read.end() - part.extent.offset;
    part.extent = {read.end(), part.extent.length - taken};
    part.place.at += taken;
  }
  if (parts_.empty()) return false;
  set_hull();
  return true;
}

void FetchPiece::set_hull() {
  const Bytes from = parts_.front().extent.offset;
  hull_ = {from, parts_.back().extent.end() - from};
}

}  // namespace forebay
