#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "core/model/extent.hpp"

namespace forebay {

/// Addresses, offsets and lengths of O_DIRECT transfers are multiples of this everywhere: it is the
/// largest logical block size of devices in use (open(2), "O_DIRECT").
constexpr Bytes direct_alignment = 4 * KiB;

constexpr Bytes round_down(Bytes value, Bytes unit) { return value - value % unit; }
constexpr Bytes round_up(Bytes value, Bytes unit) { return round_down(value + unit - 1, unit); }

/// What has to be transferred to have `extent`: whole units of direct_alignment.
constexpr Extent transfer_of(Extent extent) {
  const Bytes from = round_down(extent.offset, direct_alignment);
  return {from, round_up(extent.end(), direct_alignment) - from};
}

/// The future of a file, cut into pieces that fit a block of the buffer, in the order in which they
/// will be read. Pieces are made one at a time: a plan for a terabyte costs no more than its
/// extents.
class FetchPlan {
 public:
  FetchPlan() = default;

  /// `extents` in the order of reading, as a person wrote them: they may overlap, lie beyond the
  /// file or be absurdly large, and are clipped to `file_size`. A length of 0 means to the end of
  /// the file, as for posix_fadvise. Neighbours that share a unit of transfer, or whose units
  /// touch, are read as one. `block` is a multiple of direct_alignment: the transfer of no piece is
  /// longer.
  ///
  /// Worked example, a block of 8 KiB: {100, 200} and {400, 16000} are one extent, {100, 16300},
  /// whose pieces are {100, 8092}, {8192, 8192} and {16384, 16}.
  FetchPlan(const std::vector<Extent>& extents, Bytes file_size, Bytes block);

  /// The next piece; none at the end.
  std::optional<Extent> next();
  /// Goes to the first extent, from here on and then from the beginning, that holds the byte at
  /// `offset`; the next piece begins with it. False, and nothing happens: there is none.
  bool seek(Bytes offset);
  /// Whether an extent, wherever the plan is, holds the byte at `offset`.
  bool covers(Bytes offset) const;
  bool at_end() const { return current_ == extents_.size(); }

  /// What it was made of, clipped and joined.
  const std::vector<Extent>& extents() const { return extents_; }
  /// Bytes of all pieces together.
  Bytes bytes() const { return bytes_; }
  /// Extents that lay wholly outside the file or had a negative offset or length.
  std::size_t outside() const { return outside_; }

 private:
  std::vector<Extent> extents_;
  Bytes block_ = 0;
  Bytes bytes_ = 0;
  std::size_t outside_ = 0;
  std::size_t current_ = 0;  ///< The extent that the next piece is cut from.
  Bytes cut_ = 0;            ///< Bytes already cut from it.
};

}  // namespace forebay
