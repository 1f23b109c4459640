#include "core/plan/part_ends.hpp"

#include <algorithm>
#include <array>

namespace forebay {

Extent whole_granules_in(const RankPart& part, Bytes granule) {
  const Extent bytes = part.hull();
  const Bytes first = round_up(bytes.offset, granule);
  const Bytes end = round_down(bytes.end(), granule);
  return first < end ? Extent{first, end - first} : Extent{bytes.end(), 0};
}

RankPart ends_of(const RankPart& part, Bytes granule) {
  const Extent bytes = part.hull();
  const Extent inside = whole_granules_in(part, granule);
  const std::array<Bytes, 2> offsets{0, inside.end() - bytes.offset};
  const std::array<Bytes, 2> lengths{inside.offset - bytes.offset, bytes.end() - inside.end()};
  const Bytes length = bytes.length - inside.length;
  if (length == 0) return {};
  return {{StridedTree::indexed(offsets, lengths), bytes.offset, bytes.length}, 0, length};
}

bool mostly_whole(const std::vector<RankPart>& parts, Bytes granule, double least) {
  Bytes total = 0;
  Bytes whole = 0;
  for (const RankPart& part : parts) {
    if (part.hull().length != part.length) return false;
    total += part.length;
    whole += whole_granules_in(part, granule).length;
  }
  return whole > 0 && static_cast<double>(whole) >= least * static_cast<double>(total);
}

}  // namespace forebay
