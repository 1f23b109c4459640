// The state of a block-structured mesh code, as FLASH keeps it: cubic blocks with guard cells
// around them, all unknowns of a cell side by side, and a few small arrays that describe the
// blocks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "proxies/workload/dimensions.hpp"
#include "proxies/workload/pattern_data.hpp"

namespace checkpoint {

struct Shape {
  int blocks = 32;    ///< Of each rank.
  int side = 16;      ///< Cells of a block on each side, without guards.
  int guard = 4;      ///< Guard cells on each side of a block.
  int unknowns = 24;  ///< Doubles of a cell.
};

/// One array of the checkpoint. Its first dimension is the number of blocks of all ranks.
struct Variable {
  enum class Type { int32, float64 };

  std::string name;
  Type type = Type::float64;
  workload::Dimensions of_block;  ///< The other dimensions.
  std::byte* memory = nullptr;    ///< Its first element on this rank.
  std::uint64_t offset = 0;       ///< In the raw file, where one variable follows the other.
  bool is_unknown = false;        ///< Spread over the cells in memory; otherwise contiguous.

  std::uint64_t element_bytes() const { return type == Type::int32 ? 4 : 8; }
  std::uint64_t block_bytes() const { return workload::volume(of_block) * element_bytes(); }
};

/// The blocks of one rank. Data is a function of the position in the raw file, so a checkpoint does
/// not depend on how its blocks are spread over ranks.
class Mesh {
 public:
  Mesh(Shape shape, int rank, int ranks);
  Mesh(const Mesh&) = delete;
  Mesh& operator=(const Mesh&) = delete;

  const Shape& shape() const { return shape_; }
  const std::vector<Variable>& variables() const { return variables_; }
  std::uint64_t first_block() const { return first_block_; }
  std::uint64_t total_blocks() const { return total_blocks_; }
  std::uint64_t checkpoint_bytes() const;
  std::span<std::byte> memory() { return memory_; }

  /// Dimensions of the unknowns in memory, slowest first: block, z, y, x (all with guards),
  /// unknown.
  workload::Dimensions unknowns_in_memory() const;

  void fill(const workload::PatternData& data);

  /// Offsets in a mismatch are those of the raw file.
  std::optional<workload::Mismatch> check(const workload::PatternData& data) const;

 private:
  /// Calls `visit(offset in memory_, index in a variable)` for all cells; the index of a guard
  /// cell is -1. A visit that returns false ends the walk.
  template <typename Visit>
  void for_each_cell(Visit visit) const;

  Shape shape_;
  std::uint64_t first_block_;
  std::uint64_t total_blocks_;
  std::uint64_t unknowns_offset_ = 0;  ///< Of the unknowns in memory_.
  std::vector<Variable> variables_;
  std::vector<std::byte> memory_;
};

}  // namespace checkpoint
