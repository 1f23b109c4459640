#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <vector>

#include "core/model/direct_io.hpp"
#include "core/model/extent.hpp"

namespace forebay {

/// What has to be transferred to have `extent`: whole units of direct_alignment.
constexpr Extent transfer_of(Extent extent) {
  const Bytes from = round_down(extent.offset, direct_alignment);
  return {from, round_up(extent.end(), direct_alignment) - from};
}

/// Extents are taken for one if they share a unit of transfer, or their units touch: less than
/// these two lies between them.
constexpr Bytes most_between = 2 * direct_alignment;

/// What requests look like.
struct RequestShape {
  Bytes most = 0;  ///< Of a transfer; a multiple of direct_alignment.
  /// Extents are fetched by one request if no more lies between their transfers; without a value
  /// each has requests of its own.
  std::optional<Bytes> gap;
  bool operator==(const RequestShape&) const = default;
};

/// Where in the order of reading something stands: what is read later is greater.
struct ReadingPlace {
  std::uint64_t extent = 0;  ///< Of the plan, counted on when the plan is gone through again.
  Bytes at = 0;              ///< In that extent.
  auto operator<=>(const ReadingPlace&) const = default;
};

/// What one request fetches: declared parts that do not overlap, and what lies between them.
class FetchPiece {
 public:
  struct Part {
    Extent extent;
    ReadingPlace place;
  };

  explicit FetchPiece(const Part& part) : hull_(part.extent), parts_{part} {}

  /// From the first byte of any part to the last one.
  const Extent& hull() const { return hull_; }
  const std::vector<Part>& parts() const { return parts_; }
  /// Bytes of the parts.
  Bytes needed() const;
  /// What lies between the parts, ascending.
  std::vector<Extent> between() const;
  /// Where the part begins that will be read first, and where the one ends that will be read last.
  ReadingPlace begin() const;
  ReadingPlace end() const;
  /// The places from the first to behind the last of what `read` has of its parts; none: nothing.
  struct Places {
    ReadingPlace first;
    ReadingPlace end;
  };
  std::optional<Places> places_of(Extent read) const;

  /// Whether a part has a byte of `extent`.
  bool touches(Extent extent) const;
  /// The transfer of the whole if `extent` were a part, too; none: it shares a unit of transfer
  /// with a part, or more than `gap` lies between.
  std::optional<Extent> transfer_with(Extent extent, Bytes gap) const;
  void add(const Part& part);
  /// Takes out what was read: parts inside of `read`, and the beginning of those that it runs into.
  /// A part may begin with some bytes between neighbours that share a unit, which nobody reads.
  /// Tells what that was. The piece may be empty afterwards, and of no use any more.
  std::vector<Extent> take_out(Extent read);
  bool empty() const { return parts_.empty(); }

 private:
  void set_hull();

  Extent hull_;
  std::vector<Part> parts_;  ///< Ascending by offset; none only when all was taken out.
};

}  // namespace forebay
