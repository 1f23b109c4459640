#pragma once

#include <optional>
#include <vector>

#include "core/plan/fetch_piece.hpp"

namespace forebay {

/// How long requests of a storage took, one after the other or several at a time, by their shape.
/// What those of another shape would take lies between two bounds, whatever limits the storage: a
/// larger request is no faster than a smaller one, and no slower in proportion to its bytes.
class RequestTimes {
 public:
  /// Requests of `shape` had `mean` bytes and came one in `seconds`. What was measured of the shape
  /// before counts as much as this.
  void add(const RequestShape& shape, double mean, double seconds);
  void clear() { measured_.clear(); }

  /// Bytes of a request of `shape`; none: it was not measured.
  std::optional<double> mean_of(const RequestShape& shape) const;

  /// Seconds from one request to the next: as measured with `shape`, or else the least that is
  /// possible for a mean of `mean` bytes after what was measured with the next smaller and the next
  /// larger ones. Something must have been measured. Beyond the largest the storage is credited
  /// with twice the bandwidth that it has shown.
  double least(const RequestShape& shape, double mean) const;

 private:
  struct Measured {
    RequestShape shape;
    double mean;
    double seconds;
  };
  std::vector<Measured> measured_;  ///< Ascending by their mean.
};

}  // namespace forebay
