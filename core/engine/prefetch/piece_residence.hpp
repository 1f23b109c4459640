#pragma once

#include <algorithm>

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

}  // namespace forebay
