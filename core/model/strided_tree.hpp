#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/model/error.hpp"
#include "core/model/extent.hpp"

namespace forebay {

/// `count` blocks of `block` bytes, their starts `stride` bytes apart, the first at `offset`: what
/// a walk over a tree yields. `stride` may be negative in memory; it has no meaning if count == 1.
/// Worked example: every second 8-byte word from 100 on, three times, is {100, 8, 16, 3}.
struct Run {
  Bytes offset = 0;
  Bytes block = 0;
  Bytes stride = 0;
  std::int64_t count = 0;

  constexpr Bytes bytes() const { return block * count; }
  constexpr bool operator==(const Run&) const = default;
};

struct TiledTree;
struct TreeShape;

/// Which bytes an MPI datatype selects, in type-map order, without their types: a canonical,
/// immutable tree of strides. Copying one copies a pointer.
///
/// A node is one of
///  - contiguous: bytes [0, length);
///  - strided: `count` copies of a child, `stride` apart;
///  - indexed: contiguous blocks at arbitrary displacements (one block length for all, or one
///  each);
///  - sequence: different children at displacements of their own (MPI_Type_create_struct).
/// Canonical means: adjacent pieces are merged, a stride over a stride that continues it is one
/// stride, a single child is not wrapped, empty pieces are dropped. An MPI subarray of d dimensions
/// is at most d nested strides, whatever its number of pieces, and costs O(d) to describe.
///
/// Sizes and offsets are limited to +-2^62 bytes; a builder asserts this.
class StridedTree {
 public:
  /// No bytes at all.
  StridedTree();

  static StridedTree contiguous(Bytes length);

  /// `count` copies of `child`, the i-th moved by i * stride bytes. count >= 0; stride of any sign.
  static StridedTree strided(std::int64_t count, Bytes stride, const StridedTree& child);

  /// Blocks of `lengths[i]` bytes at `offsets[i]`, in this order. The spans have equal length.
  static StridedTree indexed(std::span<const Bytes> offsets, std::span<const Bytes> lengths);

  /// Copies of the one `child` at `offsets[i]`, in this order (MPI_Type_create_indexed_block).
  static StridedTree indexed(std::span<const Bytes> offsets, const StridedTree& child);

  struct Placed;
  /// `children[i].tree` at `children[i].offset`, in this order.
  static StridedTree sequence(std::span<const Placed> children);

  /// The same bytes moved by `offset`.
  StridedTree shifted(Bytes offset) const;

  Bytes size() const;   ///< Data bytes selected.
  Bytes lower() const;  ///< Lowest offset of a byte; 0 if empty.
  Bytes upper() const;  ///< One past the highest byte; 0 if empty.

  /// Number of contiguous pieces a walk meets (adjacent pieces merged where canonical form sees
  /// it).
  std::int64_t pieces() const;

  /// Type-map order is ascending and no byte is selected twice. Holds for every legal filetype of a
  /// file opened for writing (MPI 4.0, section 14.3).
  bool monotone() const;

  /// No holes: size() == upper() - lower() and monotone().
  bool dense() const;

  /// Equal trees have equal fingerprints: XXH3 of the wire form's shape, seeded with its origin.
  /// Computed once per shape, so it is cheap to ask again.
  std::uint64_t fingerprint() const;

  bool operator==(const StridedTree& other) const;

  /// The wire form: docs/formats/view-tree.md. Versioned and checksummed.
  std::vector<std::byte> serialize() const;

  /// Errors: invalid_argument with the reason, for anything that serialize() did not produce.
  static Result<StridedTree> parse(std::span<const std::byte> wire);

  /// Bytes of memory that the description takes.
  std::size_t memory_bytes() const;

 private:
  friend class TreeBuilder;
  friend class TreeCursor;
  friend class DataOffsets;
  friend Bytes data_before(const TiledTree& tiled, Bytes offset);
  StridedTree(Bytes origin, std::shared_ptr<const TreeShape> shape);

  Bytes origin_ = 0;  ///< Offset of the first byte in type-map order; 0 if empty.
  std::shared_ptr<const TreeShape> shape_;
};

struct StridedTree::Placed {
  Bytes offset = 0;
  StridedTree tree;
};

/// A tree repeated without end: copy k lies at displacement + k * extent. This is a file view
/// (displacement, filetype and its extent) and also a buffer (address, datatype and its extent).
/// Data position p counts selected bytes from the start of copy 0.
struct TiledTree {
  StridedTree tree;
  Bytes displacement = 0;
  Bytes extent = 0;  ///< Distance of two copies, bytes; any sign in memory, > 0 in a file.

  /// Monotone across copies too: what a file view must be for the collective engine.
  bool monotone() const;
  bool operator==(const TiledTree& other) const = default;
};

/// A position in a tiled tree, and the walk from it. Holds no reference to the TiledTree's owner:
/// it shares the nodes. All seeks are O(depth), with a binary search per indexed node.
class TreeCursor {
 public:
  explicit TreeCursor(const TiledTree& tiled);
  ~TreeCursor();
  TreeCursor(const TreeCursor&);
  TreeCursor& operator=(const TreeCursor&);
  TreeCursor(TreeCursor&&) noexcept;
  TreeCursor& operator=(TreeCursor&&) noexcept;

  /// To data position `position` >= 0.
  void seek_data(Bytes position);

  /// To the first data byte whose offset is >= `offset`. Precondition: tiled.monotone().
  void seek_offset(Bytes offset);

  /// Where the walk stands: selected bytes before this point.
  Bytes data_position() const;

  /// The offset of the next data byte. Precondition: the tree is not empty.
  Bytes offset() const;

  /// The next run: as many equal, equally spaced blocks as the tree holds in one piece, limited to
  /// data positions below `data_end` and (monotone trees only) to offsets below `offset_end`. The
  /// cursor moves past it. False, and nothing moves, if there is none. A block cut by a limit is
  /// yielded as a run of its own with count == 1.
  bool next(Bytes data_end, Bytes offset_end, Run& run);

  /// Without a limit on offsets.
  bool next(Bytes data_end, Run& run);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// The number of selected bytes of a monotone tiled tree whose offset is below `offset`; O(depth).
Bytes data_before(const TiledTree& tiled, Bytes offset);

}  // namespace forebay
