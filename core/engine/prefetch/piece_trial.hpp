#pragma once

#include <cstdint>
#include <utility>

#include "core/engine/prefetch/piece_residence.hpp"
#include "core/engine/prefetch/prefetch_figures.hpp"
#include "core/engine/prefetch/request_memory.hpp"
#include "core/model/extent.hpp"
#include "core/plan/fetch_piece.hpp"
#include "core/storage/fetch_source.hpp"

namespace forebay {

/// What one opening leaves to the page cache: pieces that it has; or, where the kernel does not
/// tell, a piece now and then, whose read shows whether it has them (CacheTrial).
class PieceTrial {
 public:
  explicit PieceTrial(const FetchSource& source) : is_told_(source.tells_residence()) {}

  /// The kernel tells what the page cache has.
  bool is_told() const { return is_told_; }

  /// Another piece was cut from the plan.
  void next_piece() { is_weighed_ = false; }

  /// Whether `piece`, whose transfer lies in `held` of the file, is left. `memory`, `device`: of
  /// other openings. `figures`: of this one.
  bool leaves(FetchSource& source, const FetchPiece& piece, Extent held, RequestMemory& memory,
              std::uint64_t device, const PrefetchFigures& figures) {
    // Asked once, not whenever there may be room for it: to ask may take a mapping.
    if (std::exchange(is_weighed_, true)) return false;
    if (is_told_) return is_in_page_cache(source, piece, held);
    const bool is_first = figures.requests == 0 && figures.bytes_resident == 0;
    if (!memory.leaves(device, is_first)) return false;
    left_ = piece.parts().front().extent;
    return true;
  }

  /// Of what is left, until it is read.
  Bytes offset() const { return left_.offset; }
  /// Whether `read` is the first of it. Later ones find what the kernel has read ahead.
  bool is_answered_by(Extent read) {
    const bool is_first =
        !left_.empty() && read.offset <= left_.offset && left_.offset < read.end();
    if (!intersect(left_, read).empty()) left_ = {};
    return is_first;
  }

 private:
  const bool is_told_;
  bool is_weighed_ = false;  ///< Whether the piece should be left was asked.
  Extent left_;
};

}  // namespace forebay
