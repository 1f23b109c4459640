#pragma once

#include <algorithm>

namespace forebay {

/// How far a reader has come in its plan; what lies before is passed. A `Place` is less than those
/// that are read later.
///
/// One read further on shows nothing by itself: parts of a file's index lie between its data, and
/// are read some time before the data around them (nodes of the B-trees of HDF5's chunks). Only the
/// next read tells whether the reader has gone there, or is back where it was.
template <typename Place>
class ReadingFront {
 public:
  ReadingFront() = default;
  explicit ReadingFront(const Place& place) : passed_(place), reached_(place) {}

  const Place& passed() const { return passed_; }

  /// A read begins at `place`. All that the one before had come to is passed, unless this one is
  /// back before it.
  void begin_read(const Place& place) {
    passed_ = std::max(passed_, std::min(reached_, place));
    goes_on_ = !(reached_ < place);
  }
  /// The read has come to `place`.
  void read_to(const Place& place) {
    reached_ = place;
    if (goes_on_) passed_ = std::max(passed_, place);
  }

 private:
  Place passed_{};
  Place reached_{};      ///< By the last read.
  bool goes_on_ = true;  ///< It began where the one before had ended, or before that.
};

}  // namespace forebay
