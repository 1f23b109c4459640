#include "proxies/checkpoint/mesh.hpp"

namespace checkpoint {
namespace {

constexpr std::uint64_t double_bytes = sizeof(double);

/// Where an array of doubles may start in memory.
std::uint64_t aligned(std::uint64_t offset) {
  return (offset + double_bytes - 1) / double_bytes * double_bytes;
}

std::string unknown_name(int number) {
  return std::string("unknown ") + (number < 10 ? "0" : "") + std::to_string(number);
}

}  // namespace

Mesh::Mesh(Shape shape, int rank, int ranks)
    : shape_(shape),
      first_block_(static_cast<std::uint64_t>(rank) * shape.blocks),
      total_blocks_(static_cast<std::uint64_t>(ranks) * shape.blocks) {
  using Type = Variable::Type;
  // FLASH's tree data: level and type of each block, its 15 neighbours, parent and children, and
  // its place in the domain.
  variables_ = {{.name = "refine level", .type = Type::int32, .of_block = {}},
                {.name = "node type", .type = Type::int32, .of_block = {}},
                {.name = "gid", .type = Type::int32, .of_block = {15}},
                {.name = "coordinates", .of_block = {3}},
                {.name = "block size", .of_block = {3}},
                {.name = "bounding box", .of_block = {3, 2}}};
  const std::size_t arrays = variables_.size();
  for (int number = 1; number <= shape.unknowns; ++number) {
    variables_.push_back({.name = unknown_name(number),
                          .of_block = workload::Dimensions(3, shape.side),
                          .is_unknown = true});
  }

  std::vector<std::uint64_t> in_memory;
  std::uint64_t in_file = 0;
  std::uint64_t end = 0;
  for (Variable& variable : variables_) {
    variable.offset = in_file;
    in_file += total_blocks_ * variable.block_bytes();
    if (variable.is_unknown) continue;
    in_memory.push_back(aligned(end));
    end = in_memory.back() + shape.blocks * variable.block_bytes();
  }
  unknowns_offset_ = aligned(end);
  memory_.resize(unknowns_offset_ + workload::volume(unknowns_in_memory()) * double_bytes);
  for (std::size_t i = 0; i < variables_.size(); ++i) {
    variables_[i].memory =
        memory_.data() +
        (i < arrays ? in_memory[i] : unknowns_offset_ + (i - arrays) * double_bytes);
  }
}

std::uint64_t Mesh::checkpoint_bytes() const {
  return variables_.back().offset + total_blocks_ * variables_.back().block_bytes();
}

workload::Dimensions Mesh::unknowns_in_memory() const {
  const int side = shape_.side + 2 * shape_.guard;
  return {shape_.blocks, side, side, side, shape_.unknowns};
}

template <typename Visit>
void Mesh::for_each_cell(Visit visit) const {
  const std::uint64_t cell_bytes = shape_.unknowns * double_bytes;
  const int side = shape_.side;
  const int guard = shape_.guard;
  const auto outside = [&](int i) { return i < 0 || i >= side; };
  std::uint64_t at = unknowns_offset_;
  for (int block = 0; block < shape_.blocks; ++block) {
    for (int z = -guard; z < side + guard; ++z) {
      for (int y = -guard; y < side + guard; ++y) {
        for (int x = -guard; x < side + guard; ++x, at += cell_bytes) {
          std::int64_t index = -1;
          if (!outside(z) && !outside(y) && !outside(x)) {
            index = static_cast<std::int64_t>(first_block_) + block;
            for (const int i : {z, y, x}) index = index * side + i;
          }
          if (!visit(at, index)) return;
        }
      }
    }
  }
}

void Mesh::fill(const workload::PatternData& data) {
  const std::size_t arrays = variables_.size() - shape_.unknowns;
  for (std::size_t i = 0; i < arrays; ++i) {
    const Variable& variable = variables_[i];
    data.fill({variable.memory, shape_.blocks * variable.block_bytes()},
              variable.offset + first_block_ * variable.block_bytes());
  }
  for_each_cell([&](std::uint64_t at, std::int64_t index) {
    for (std::size_t i = arrays; index >= 0 && i < variables_.size(); ++i, at += double_bytes) {
      data.fill(std::span(memory_).subspan(at, double_bytes),
                variables_[i].offset + index * double_bytes);
    }
    return true;
  });
}

std::optional<workload::Mismatch> Mesh::check(const workload::PatternData& data) const {
  std::optional<workload::Mismatch> wrong;
  const std::size_t arrays = variables_.size() - shape_.unknowns;
  for (std::size_t i = 0; i < arrays && !wrong; ++i) {
    const Variable& variable = variables_[i];
    wrong = data.check({variable.memory, shape_.blocks * variable.block_bytes()},
                       variable.offset + first_block_ * variable.block_bytes());
  }
  if (wrong) return wrong;
  for_each_cell([&](std::uint64_t at, std::int64_t index) {
    for (std::size_t i = arrays; i < variables_.size() && !wrong; ++i, at += double_bytes) {
      const auto value = std::span(memory_).subspan(at, double_bytes);
      wrong = index < 0 ? workload::check_untouched(value, at)
                        : data.check(value, variables_[i].offset + index * double_bytes);
    }
    return !wrong;
  });
  return wrong;
}

}  // namespace checkpoint
