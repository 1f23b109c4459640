// A block of an array of any dimension: the part one rank owns, where it lies in the file, and
// where in that rank's memory, which has a halo around it.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "proxies/workload/datatype.hpp"
#include "proxies/workload/dimensions.hpp"
#include "proxies/workload/pattern_data.hpp"

namespace workload {

/// Which dimension is the fastest in memory and file: the last (C) or the first (Fortran).
enum class Order { c, fortran };

struct Block {
  Dimensions global;  ///< Elements of the whole array.
  Dimensions local;   ///< Elements of this block; sizes may be zero.
  Dimensions start;   ///< Its first element in the array.
  int halo = 0;       ///< Elements around the block in memory, on each side.
  std::size_t element_bytes = 1;
  Order order = Order::c;

  /// Bytes of the block itself, without its halo.
  std::uint64_t bytes() const;

  /// Bytes of the whole array.
  std::uint64_t whole_bytes() const;

  /// Bytes that it occupies in memory, with its halo.
  std::uint64_t memory_bytes() const;

  /// The block in the file, as a type with the extent of the whole array. `element` has
  /// `element_bytes`. The block must not be empty.
  Datatype file_type(MPI_Datatype element) const;

  /// The block in memory, as a type with the extent of block and halo.
  Datatype memory_type(MPI_Datatype element) const;

  /// Fills the block in `memory` from `data`; the array starts at `file_base` bytes.
  void fill(std::span<std::byte> memory, const PatternData& data, std::uint64_t file_base) const;

  /// Checks the block in `memory` against `data`, and that its halo is untouched.
  std::optional<Mismatch> check(std::span<const std::byte> memory, const PatternData& data,
                                std::uint64_t file_base) const;

  /// Calls `visit(memory_offset, file_offset, bytes)` for each run of elements along the fastest
  /// dimension, in rising order of both offsets (bytes; the file's is relative to the array). A
  /// visit that returns false ends the walk.
  template <typename Visit>
  void for_each_row(Visit visit) const;
};

/// Splits `total` elements over a process grid, as evenly as possible, and gives the block at
/// coordinates `at`: part i of p is [i * n / p, (i + 1) * n / p).
Block block_of_grid(const Dimensions& total, const Dimensions& grid, const Dimensions& at);

/// The coordinates of `rank` in `grid`; the last dimension is the fastest, as in MPI_Cart_create.
Dimensions coordinates_in(const Dimensions& grid, int rank);

/// The process grid of MPI_Dims_create: balanced, largest number first.
Dimensions balanced_grid(int ranks, std::size_t dimensions);

template <typename Visit>
void Block::for_each_row(Visit visit) const {
  if (bytes() == 0) return;
  const std::size_t rank = global.size();
  // Dimension d of the walk, from slowest to fastest.
  const auto dim = [&](std::size_t d) { return order == Order::c ? d : rank - 1 - d; };
  Dimensions at(rank, 0);
  for (;;) {
    std::uint64_t in_memory = 0;
    std::uint64_t in_file = 0;
    for (std::size_t d = 0; d < rank; ++d) {
      const std::size_t i = dim(d);
      in_memory = in_memory * (local[i] + 2 * halo) + at[i] + halo;
      in_file = in_file * global[i] + start[i] + at[i];
    }
    const std::size_t row_bytes = local[dim(rank - 1)] * element_bytes;
    if (!visit(in_memory * element_bytes, in_file * element_bytes, row_bytes)) return;

    std::size_t d = rank - 1;  // The fastest dimension is a whole row.
    for (; d > 0; --d) {
      const std::size_t i = dim(d - 1);
      if (++at[i] < local[i]) break;
      at[i] = 0;
    }
    if (d == 0) return;
  }
}

}  // namespace workload
