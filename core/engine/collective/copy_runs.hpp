#pragma once

#include <cstddef>

#include "core/model/extent.hpp"
#include "core/model/strided_tree.hpp"

namespace forebay {

// The copies between a program's buffer and a buffer of ours. Both sides are taken run by run, so
// that a piece of 8 bytes costs a load and a store and no walk.

enum class Direction {
  gather,   ///< From the program's memory into our buffer.
  scatter,  ///< From our buffer into the program's memory.
  /// The same where the program's memory is too large to stay in a core's cache: blocks are written
  /// past the caches, which spares the read of each line that a cached store begins with.
  scatter_uncached,
};

/// How data that was read gets to a program that asked for `length` bytes.
constexpr Direction scatter_of(Bytes length) {
  constexpr Bytes cache_bytes = MiB;  // Half of a core's own cache, on what clusters have today.
  return length < cache_bytes ? Direction::scatter : Direction::scatter_uncached;
}

/// What a buffer's tree says is an offset is an address.
std::byte* address_of(Bytes offset);

/// Moves data bytes [memory.data_position(), + length) between the program's buffer, which `memory`
/// walks (its offsets are addresses), and the contiguous `buffer`. `memory` moves on by `length`.
void copy_contiguous(TreeCursor& memory, std::byte* buffer, Bytes length, Direction direction);

/// The same between the program's buffer and the bytes that `file_run` names in an image of the
/// file, in which the byte at offset o lies at image + (o - image_origin). `memory` moves on by
/// file_run.bytes(). The pieces of the two sides need not correspond.
void copy_run(TreeCursor& memory, const Run& file_run, std::byte* image, Bytes image_origin,
              Direction direction);

}  // namespace forebay
