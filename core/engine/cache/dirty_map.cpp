#include "core/engine/cache/dirty_map.hpp"

#include <algorithm>
#include <cassert>
#include <iterator>
#include <limits>
#include <utility>

namespace forebay {

DirtyMap::Pieces::iterator DirtyMap::behind(Bytes offset) {
  auto piece = pieces_.upper_bound(offset);
  if (piece != pieces_.begin() && std::prev(piece)->second.end > offset) --piece;
  return piece;
}

DirtyMap::Pieces::const_iterator DirtyMap::behind(Bytes offset) const {
  auto piece = pieces_.upper_bound(offset);
  if (piece != pieces_.begin() && std::prev(piece)->second.end > offset) --piece;
  return piece;
}

void DirtyMap::add(Bytes offset, Node node) {
  assert(offset < node.end);
  bytes_ += node.end - offset;
  ++pieces_of_order_[node.order];
  pieces_.emplace(offset, std::move(node));
}

DirtyMap::Pieces::iterator DirtyMap::remove(Pieces::iterator piece) {
  bytes_ -= piece->second.end - piece->first;
  const auto count = pieces_of_order_.find(piece->second.order);
  if (--count->second == 0) pieces_of_order_.erase(count);
  return pieces_.erase(piece);
}

DirtyMap::Pieces::iterator DirtyMap::carve(Pieces::iterator piece, Bytes low, Bytes high) {
  const Bytes begin = piece->first;
  const Node node = piece->second;
  auto next = remove(piece);
  if (begin < low) add(begin, {low, node.order, node.place});
  if (high < node.end) {
    add(high, {node.end, node.order, node.place.from(high - begin)});
    next = pieces_.find(high);
  }
  return next;
}

/// Adds a piece, as one with a neighbour that it continues.
void DirtyMap::join(Bytes offset, Node node) {
  const auto continues = [](Bytes begin, const Node& first, Bytes next, const Node& second) {
    return first.end == next && first.order == second.order &&
           first.place.segment == second.place.segment &&
           first.place.payload == second.place.payload &&
           first.place.skip + (next - begin) == second.place.skip;
  };
  if (const auto next = pieces_.find(node.end);
      next != pieces_.end() && continues(offset, node, next->first, next->second)) {
    node.end = next->second.end;
    remove(next);
  }
  if (const auto after = pieces_.lower_bound(offset); after != pieces_.begin()) {
    const auto before = std::prev(after);
    if (continues(before->first, before->second, offset, node)) {
      offset = before->first;
      node.place = before->second.place;
      remove(before);
    }
  }
  add(offset, std::move(node));
}

std::vector<std::uint64_t> DirtyMap::insert(Extent extent, std::uint64_t order,
                                            const LogPlace& place) {
  std::vector<std::uint64_t> superseded;
  Bytes position = extent.offset;  // What of the extent lies before it is dealt with.
  const auto add_up_to = [&](Bytes end) {
    if (position < end) join(position, {end, order, place.from(position - extent.offset)});
  };
  for (auto piece = behind(extent.offset); piece != pieces_.end() && piece->first < extent.end();) {
    if (piece->second.order > order) {
      add_up_to(piece->first);
      position = piece->second.end;
      ++piece;
    } else {
      superseded.push_back(piece->second.order);
      piece = carve(piece, extent.offset, extent.end());
    }
  }
  add_up_to(extent.end());
  return superseded;
}

Bytes DirtyMap::erase(Extent extent, std::uint64_t order) {
  const Bytes before = bytes_;
  for (auto piece = behind(extent.offset); piece != pieces_.end() && piece->first < extent.end();) {
    if (piece->second.order == order) {
      piece = carve(piece, extent.offset, extent.end());
    } else {
      ++piece;
    }
  }
  return before - bytes_;
}

void DirtyMap::cut(Bytes size) {
  for (auto piece = behind(size); piece != pieces_.end();) {
    piece = carve(piece, size, std::numeric_limits<Bytes>::max());
  }
}

void DirtyMap::clear() {
  pieces_.clear();
  pieces_of_order_.clear();
  bytes_ = 0;
}

std::vector<DirtyMap::Piece> DirtyMap::overlapping(Extent extent) const {
  std::vector<Piece> found;
  for (auto piece = behind(extent.offset); piece != pieces_.end() && piece->first < extent.end();
       ++piece) {
    const Node& node = piece->second;
    const Extent part = intersect({piece->first, node.end - piece->first}, extent);
    found.push_back({part, node.order, node.place.from(part.offset - piece->first)});
  }
  return found;
}

bool DirtyMap::any(Extent extent) const {
  const auto piece = behind(extent.offset);
  return piece != pieces_.end() && piece->first < extent.end();
}

std::optional<std::uint64_t> DirtyMap::lowest_order() const {
  if (pieces_of_order_.empty()) return {};
  return pieces_of_order_.begin()->first;
}

}  // namespace forebay
