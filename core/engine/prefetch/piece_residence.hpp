#pragma once

#include <algorithm>
#include <vector>

#include "core/model/extent.hpp"
#include "core/plan/fetch_piece.hpp"
#include "core/storage/fetch_source.hpp"

namespace forebay {

/// Whether the page cache has all parts of `piece`, whose transfer lies in `held` of the file.
inline bool is_in_page_cache(FetchSource& source, const FetchPiece& piece, Extent held) {
  const auto has = [&](Extent extent) { return source.resident(extent) >= extent.length; };
  const auto& parts = piece.parts();
  return has(held) || (parts.size() > 1 && std::ranges::all_of(parts, [&](const auto& part) {
                         return has(intersect(transfer_of(part.extent), held));
                       }));
}

/// What of `extent` the page cache does not have, as far as the kernel tells; ascending.
inline std::vector<Extent> absent_parts(FetchSource& source, Extent extent) {
  const Bytes there = source.resident(extent);
  if (there <= 0) return {extent};
  const Bytes half = round_up(extent.length / 2, direct_alignment);
  if (there >= extent.length || half >= extent.length) return {};
  std::vector<Extent> parts = absent_parts(source, {extent.offset, half});
  const auto behind = absent_parts(source, {extent.offset + half, extent.length - half});
  parts.insert(parts.end(), behind.begin(), behind.end());
  return parts;
}

}  // namespace forebay
