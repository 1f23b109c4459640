#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "core/model/extent.hpp"
#include "core/plan/fetch_piece.hpp"

namespace forebay {

/// Whether who has read to `reached` of a plan is at `place` when it opens the file again, and not
/// another reader of the same program.
constexpr bool is_near(Bytes reached, Bytes place) {
  constexpr Bytes most = 512 * KiB;
  return place >= reached - most && place <= reached + most;
}

/// Where in the order of reading something stands, as one number: the bytes of the plan that are
/// read before it. Readers with the same plan compare how far they are by it.
class PlanPlaces {
 public:
  PlanPlaces() = default;
  /// `extents` as FetchPlan has them.
  explicit PlanPlaces(std::vector<Extent> extents);

  /// Of the byte at `offset`: in the first extent that holds it from the place `from` on, else in
  /// the first of all. None: it is in no extent.
  std::optional<Bytes> of(Bytes offset, Bytes from) const;
  /// Of the last byte of `read`, or, if it is in no extent, of the first one.
  std::optional<Bytes> of_last(Extent read, Bytes from) const;
  /// Of what a FetchPlan that was never sought in calls `place`.
  Bytes of(const ReadingPlace& place) const;
  /// The other way round; a place in [0, end()].
  ReadingPlace at(Bytes place) const;
  /// After all that is read.
  Bytes end() const { return before_.back(); }

 private:
  std::vector<Extent> extents_;
  std::vector<Bytes> before_{0};        ///< The place of each extent, and of the end.
  std::vector<std::size_t> by_offset_;  ///< The extents as they lie in the file.
  std::vector<Bytes> furthest_;         ///< Where the first of these end at most.
};

}  // namespace forebay
