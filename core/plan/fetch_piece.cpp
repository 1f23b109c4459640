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

ReadingPlace FetchPiece::begin() const { return std::ranges::min(parts_, {}, &Part::place).place; }

ReadingPlace FetchPiece::end() const {
  const auto& [extent, place] = std::ranges::max(parts_, {}, &Part::place);
  return {place.extent, place.at + extent.length};
}

std::optional<FetchPiece::Places> FetchPiece::places_of(Extent read) const {
  std::optional<Places> result;
  for (const auto& [extent, place] : parts_) {
    const Extent found = intersect(extent, read);
    if (found.empty()) continue;
    const ReadingPlace first{place.extent, place.at + found.offset - extent.offset};
    const ReadingPlace end{place.extent, first.at + found.length};
    if (!result) result = {first, end};
    result = {std::min(result->first, first), std::max(result->end, end)};
  }
  return result;
}

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

std::vector<Extent> FetchPiece::take_out(Extent read) {
  std::vector<Extent> taken;
  for (Part& part : parts_) {
    const bool is_begun = read.offset < part.extent.offset + most_between;
    if (!is_begun || intersect(part.extent, read).empty()) continue;
    const Bytes length = std::min(read.end(), part.extent.end()) - part.extent.offset;
    taken.push_back({part.extent.offset, length});
    part.extent = {part.extent.offset + length, part.extent.length - length};
    part.place.at += length;
  }
  std::erase_if(parts_, [](const Part& part) { return part.extent.empty(); });
  if (!parts_.empty()) set_hull();
  return taken;
}

void FetchPiece::set_hull() {
  const Bytes from = parts_.front().extent.offset;
  hull_ = {from, parts_.back().extent.end() - from};
}

}  // namespace forebay
