#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "core/model/extent.hpp"
#include "core/model/extent_set.hpp"
#include "core/plan/fetch_piece.hpp"

namespace forebay {

/// What of an extent, as a person wrote it, lies in a file of `file_size` bytes. A length of 0
/// means to the end of the file, as for posix_fadvise. Empty: nothing does, or a number is
/// negative.
Extent in_file(Extent written, Bytes file_size);

/// The future of a file, cut into pieces that are fetched by one request each, in the order in
/// which they will be read. Pieces are made one at a time: a plan for a terabyte costs no more than
/// its extents.
class FetchPlan {
 public:
  FetchPlan() = default;

  /// `extents` in the order of reading, as a person wrote them: they may overlap, lie beyond the
  /// file or be absurdly large, and are clipped to `file_size` by in_file(). Neighbours that share
  /// a unit of transfer, or whose units touch, are read as one.
  FetchPlan(const std::vector<Extent>& extents, Bytes file_size);

  /// The next piece; none at the end. It begins with the extent that will be read next, as much of
  /// it as a transfer holds. Where the shape has a gap, other extents that lie near join it, also
  /// from further on in the order of reading, in front of it or behind it, as long as they fit
  /// whole.
  ///
  /// Worked example, at most 8 KiB and no gap: {100, 200} and {400, 16000} are one extent,
  /// {100, 16300}, whose pieces are {100, 8092}, {8192, 8192} and {16384, 16}. At most 64 KiB and a
  /// gap of 8 KiB: of {40 KiB, 8 KiB}, {4 MiB, 1}, {60 KiB, 10} and {24 KiB, 8 KiB} the first and
  /// the last become a piece from 24 KiB to 48 KiB with 8 KiB between them; then come {4 MiB, 1}
  /// and {60 KiB, 10}, which lies 12 KiB off.
  std::optional<FetchPiece> next(const RequestShape& shape);

  /// Goes to the first extent, from here on and then from the beginning, that holds a byte of
  /// `read`; the next piece begins with its first such byte. False, and nothing happens: there is
  /// none.
  bool seek(Extent read);
  /// Where the next piece begins, and to have it begin there: `position` is one of a plan that was
  /// never sought in.
  ReadingPlace position() const { return place_of(current_, cut_); }
  void go_to(const ReadingPlace& position);
  /// What is read from the byte at `offset` on, where that comes later than here, is not of the
  /// plan any more, unless it is in pieces already; declared() stays. False, and nothing happens:
  /// no extent from here on holds that byte.
  bool end_before(Bytes offset);
  /// Whether an extent, wherever the plan is, holds a byte of `read`.
  bool covers(Extent read) const;
  /// Whether a byte of `read` is in an extent that is yet to be cut.
  bool lies_ahead(Extent read) const;
  bool at_end() const { return current_ == extents_.size(); }

  /// Up to `most` extents from here on.
  std::vector<Extent> coming(std::size_t most) const;
  /// How many there are from here on.
  std::size_t left() const { return extents_.size() - current_; }
  /// A place that is later in the order of reading than all that this plan has given out.
  ReadingPlace beyond() const { return {first_place_ + (laps_ + 1) * extents_.size(), 0}; }
  /// Places are counted from here on, not from 0: what was fetched by another plan comes before.
  void begin_after(const ReadingPlace& place) { first_place_ = place.extent; }

  /// What it was made of, clipped and joined.
  const std::vector<Extent>& extents() const { return extents_; }
  /// The same without what lies between extents that were joined.
  const ExtentSet& declared() const { return declared_; }
  /// Whether `read` lies between extents that were joined, and has nothing of them.
  bool lies_between(Extent read) const;
  /// Bytes of all pieces together, without what lies between their parts.
  Bytes bytes() const { return bytes_; }
  /// Extents that lay wholly outside the file or had a negative offset or length.
  std::size_t outside() const { return outside_; }

 private:
  /// Extents from the next one on that may join a piece.
  static constexpr std::size_t window = 64;

  void advance();
  bool join_one(FetchPiece& piece, Bytes most, Bytes gap);
  ReadingPlace place_of(std::size_t index, Bytes at) const;

  std::vector<Extent> extents_;
  ExtentSet declared_;
  Bytes bytes_ = 0;
  std::size_t outside_ = 0;
  std::size_t current_ = 0;         ///< The extent that the next piece begins with.
  Bytes cut_ = 0;                   ///< Bytes already cut from it.
  std::vector<std::size_t> taken_;  ///< Extents after it that are in pieces already.
  std::uint64_t first_place_ = 0;
  std::uint64_t laps_ = 0;  ///< How often it was sought in.
};

}  // namespace forebay
