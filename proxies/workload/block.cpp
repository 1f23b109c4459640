#include "proxies/workload/block.hpp"

namespace workload {
namespace {

Datatype subarray(const Dimensions& whole, const Dimensions& part, const Dimensions& start,
                  Order order, MPI_Datatype element) {
  MPI_Datatype type = MPI_DATATYPE_NULL;
  MPI_Type_create_subarray(static_cast<int>(whole.size()), whole.data(), part.data(), start.data(),
                           order == Order::c ? MPI_ORDER_C : MPI_ORDER_FORTRAN, element, &type);
  return Datatype(type);
}

Dimensions with_halo(const Block& block) {
  Dimensions sizes = block.local;
  for (int& size : sizes) size += 2 * block.halo;
  return sizes;
}

}  // namespace

std::uint64_t Block::bytes() const { return volume(local) * element_bytes; }

std::uint64_t Block::whole_bytes() const { return volume(global) * element_bytes; }

std::uint64_t Block::memory_bytes() const { return volume(with_halo(*this)) * element_bytes; }

Datatype Block::file_type(MPI_Datatype element) const {
  return subarray(global, local, start, order, element);
}

Datatype Block::memory_type(MPI_Datatype element) const {
  return subarray(with_halo(*this), local, Dimensions(local.size(), halo), order, element);
}

void Block::fill(std::span<std::byte> memory, const PatternData& data,
                 std::uint64_t file_base) const {
  for_each_row([&](std::uint64_t in_memory, std::uint64_t in_file, std::size_t bytes) {
    data.fill(memory.subspan(in_memory, bytes), file_base + in_file);
    return true;
  });
}

std::optional<Mismatch> Block::check(std::span<const std::byte> memory, const PatternData& data,
                                     std::uint64_t file_base) const {
  std::optional<Mismatch> first;
  std::uint64_t checked = 0;  // Memory before this offset is as it should be.
  for_each_row([&](std::uint64_t in_memory, std::uint64_t in_file, std::size_t bytes) {
    first = check_untouched(memory.subspan(checked, in_memory - checked), checked);
    if (!first) first = data.check(memory.subspan(in_memory, bytes), file_base + in_file);
    checked = in_memory + bytes;
    return !first;
  });
  if (!first) first = check_untouched(memory.subspan(checked, memory_bytes() - checked), checked);
  return first;
}

Block block_of_grid(const Dimensions& total, const Dimensions& grid, const Dimensions& at) {
  Block block;
  block.global = total;
  for (std::size_t d = 0; d < total.size(); ++d) {
    const auto bound = [&](int i) {
      return static_cast<int>(static_cast<std::int64_t>(i) * total[d] / grid[d]);
    };
    block.start.push_back(bound(at[d]));
    block.local.push_back(bound(at[d] + 1) - bound(at[d]));
  }
  return block;
}

Dimensions coordinates_in(const Dimensions& grid, int rank) {
  Dimensions at(grid.size());
  for (std::size_t d = grid.size(); d-- > 0;) {
    at[d] = rank % grid[d];
    rank /= grid[d];
  }
  return at;
}

Dimensions balanced_grid(int ranks, std::size_t dimensions) {
  Dimensions grid(dimensions, 0);
  MPI_Dims_create(ranks, static_cast<int>(dimensions), grid.data());
  return grid;
}

}  // namespace workload
