#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "core/engine/cache/log_segment.hpp"
#include "core/model/extent.hpp"

namespace forebay {

/// Which bytes of a file are only in the log, and where there. Extents of one map do not overlap:
/// where writes did, the newer one holds, whichever came to the map first. Parts of one record that
/// meet again are one piece. `order` says what is newer: the sequence number within one log, or the
/// place in the order in which several logs are replayed. Operations take O(log n) for n pieces,
/// and time for the pieces they touch.
class DirtyMap {
 public:
  struct Piece {
    Extent extent;  ///< Of the file, not empty.
    std::uint64_t order = 0;
    LogPlace place;  ///< Of the extent's first byte.
  };

  /// The bytes of `extent` lie at `place`, from its first one on. Returns the orders of what was
  /// superseded, if only in part.
  std::vector<std::uint64_t> insert(Extent extent, std::uint64_t order, const LogPlace& place);

  /// What of `extent` is of this order is dirty no more. Returns how many bytes that were.
  Bytes erase(Extent extent, std::uint64_t order);
  /// Nothing from `size` on is dirty any more.
  void cut(Bytes size);
  void clear();

  /// The pieces in `extent`, cut to it, ascending.
  std::vector<Piece> overlapping(Extent extent) const;
  bool any(Extent extent) const;

  bool empty() const { return pieces_.empty(); }
  Bytes bytes() const { return bytes_; }
  std::size_t size() const { return pieces_.size(); }
  /// Behind the last dirty byte; 0 if none is.
  Bytes end() const { return pieces_.empty() ? 0 : pieces_.rbegin()->second.end; }
  /// The oldest order that any piece has.
  std::optional<std::uint64_t> lowest_order() const;

 private:
  struct Node {
    Bytes end = 0;
    std::uint64_t order = 0;
    LogPlace place;
  };
  using Pieces = std::map<Bytes, Node>;  ///< By offset.

  /// The first one that ends behind `offset`.
  Pieces::iterator behind(Bytes offset);
  Pieces::const_iterator behind(Bytes offset) const;
  void add(Bytes offset, Node node);
  void join(Bytes offset, Node node);
  Pieces::iterator remove(Pieces::iterator piece);
  /// Takes [low, high) out of a piece that overlaps it; the piece behind what was taken.
  Pieces::iterator carve(Pieces::iterator piece, Bytes low, Bytes high);

  Pieces pieces_;
  std::map<std::uint64_t, std::int64_t> pieces_of_order_;
  Bytes bytes_ = 0;
};

}  // namespace forebay
