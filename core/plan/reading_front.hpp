#pragma once

#include <algorithm>

#include "core/plan/fetch_piece.hpp"

namespace forebay {

/// Nodes of an index that a reader passes over are less, and it goes on behind them.
constexpr Bytes most_passed_over = 4 * direct_alignment;

/// Whether a read at `place` goes on where one ended that had come to `reached`, or before.
constexpr bool goes_on(Bytes reached, Bytes place) { return place <= reached + most_passed_over; }
constexpr bool goes_on(const ReadingPlace& reached, const ReadingPlace& place) {
  if (place.extent == reached.extent) return goes_on(reached.at, place.at);
  return place < reached || (place.extent == reached.extent + 1 && place.at <= most_passed_over);
}

/// How far a reader has come in its plan; what lies before is passed. A `Place` is ReadingPlace, or
/// bytes as PlanPlaces has them.
///
/// One read further on shows nothing by itself: parts of a file's index lie between its data, and
/// are read some time before the data around them (nodes of the B-trees of HDF5's chunks). Only the
/// next read tells whether the reader has gone there, or is back where it was. Of one that was seen
/// to have gone there, the next such read is taken for the same.
template <typename Place>
class ReadingFront {
 public:
  ReadingFront() = default;
  explicit ReadingFront(const Place& place) : passed_(place), reached_(place) {}

  const Place& passed() const { return passed_; }
  Place furthest() const { return std::max(passed_, reached_); }

  /// It is at `place` now.
  void go_to(const Place& place) {
    passed_ = place;
    reached_ = place;
    has_skipped_ = false;
  }
  /// A read begins at `place`. Whether what it comes to is passed with it. Reading again what was
  /// passed shows nothing.
  bool begin_read(const Place& place) {
    if (place < passed_) return true;
    if (has_skipped_) is_skipper_ = !(place < skipped_to_);
    passed_ = std::max(passed_, std::min(reached_, place));
    has_skipped_ = !goes_on(reached_, place);
    if (has_skipped_) skipped_to_ = place;
    return !has_skipped_ || is_skipper_;
  }
  /// The read has come to `place`. `passes`: what begin_read() said of it.
  void read_to(const Place& place, bool passes) {
    if (place < passed_) return;
    reached_ = place;
    if (passes) passed_ = place;
  }

 private:
  Place passed_{};
  Place reached_{};           ///< By the last read.
  Place skipped_to_{};        ///< Where that began,
  bool has_skipped_ = false;  ///< if it did not go on where the one before had ended.
  bool is_skipper_ = false;   ///< The last one that did not was followed by reads further on.
};

}  // namespace forebay
