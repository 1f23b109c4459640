#include "tests/mpi/random_access/type_generator.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

namespace random_access {
namespace {

constexpr std::int64_t type_bytes_max = 600;
constexpr std::int64_t type_span_max = 20000;

const std::array<Basic, 7> basics = {{{MPI_BYTE, "byte", 1},
                                      {MPI_CHAR, "char", 1},
                                      {MPI_SHORT, "short", 2},
                                      {MPI_INT, "int", 4},
                                      {MPI_FLOAT, "float", 4},
                                      {MPI_DOUBLE, "double", 8},
                                      {MPI_LONG_LONG, "long_long", 8}}};

TypeModel random_basic(Random& random) {
  return basic(basics[static_cast<std::size_t>(random.below(basics.size()))]);
}

std::int64_t span(const TypeModel& type) { return type.end_byte(1) - type.first_byte(); }

std::int64_t round_up(std::int64_t value, std::int64_t unit) {
  return (value + unit - 1) / unit * unit;
}

/// Lengths of blocks, now and then all equal, now and then zero.
std::vector<std::int64_t> block_lengths(Random& random, std::int64_t count, bool equal) {
  std::vector<std::int64_t> lengths;
  const std::int64_t common = random.between(1, 4);
  for (std::int64_t i = 0; i < count; ++i) {
    lengths.push_back(equal ? common : random.percent(15) ? 0 : random.between(1, 5));
  }
  return lengths;
}

/// Where blocks of `lengths` elements go in units of `unit` so that they neither overlap nor
/// descend.
std::vector<std::int64_t> ascending_offsets(Random& random,
                                            const std::vector<std::int64_t>& lengths) {
  std::vector<std::int64_t> offsets;
  std::int64_t next = random.percent(50) ? 0 : random.between(0, 5);
  for (const std::int64_t length : lengths) {
    offsets.push_back(next);
    next += length + (random.percent(30) ? 0 : random.between(0, 6));
  }
  return offsets;
}

/// In any order, to either side of zero.
void scatter(Random& random, std::vector<std::int64_t>& offsets) {
  if (random.percent(50)) {
    for (std::size_t i = offsets.size(); i > 1; --i) {
      std::swap(offsets[i - 1], offsets[static_cast<std::size_t>(random.below(i))]);
    }
  }
  if (random.percent(40)) {
    const std::int64_t shift = random.between(1, 12);
    for (std::int64_t& offset : offsets) offset -= shift;
  }
}

ArrayPart random_subarray(Random& random) {
  ArrayPart part;
  const std::int64_t dimensions = random.between(1, 4);
  for (std::int64_t d = 0; d < dimensions; ++d) {
    const std::int64_t size = random.between(1, dimensions > 2 ? 4 : 7);
    const std::int64_t subsize = random.between(1, size);
    part.sizes.push_back(static_cast<int>(size));
    part.subsizes.push_back(static_cast<int>(subsize));
    part.starts.push_back(static_cast<int>(random.between(0, size - subsize)));
  }
  part.order = random.percent(50) ? MPI_ORDER_C : MPI_ORDER_FORTRAN;
  return part;
}

/// A grid of `ranks` processes over an array of at least as many elements a side.
ArrayDistribution random_distribution(Random& random, int ranks, std::int64_t side_max) {
  ArrayDistribution result;
  const std::int64_t dimensions = random.between(1, 3);
  int left = ranks;
  for (std::int64_t d = 0; d < dimensions; ++d) {
    const bool last = d + 1 == dimensions;
    int processes = last ? left : 1;
    if (!last) {
      std::vector<int> divisors;
      for (int i = 1; i <= left; ++i) {
        if (left % i == 0) divisors.push_back(i);
      }
      processes = divisors[static_cast<std::size_t>(random.below(divisors.size()))];
    }
    left /= processes;
    const int size = static_cast<int>(random.between(1, side_max));
    int kind = random.percent(50) ? MPI_DISTRIBUTE_BLOCK : MPI_DISTRIBUTE_CYCLIC;
    if (processes == 1 && random.percent(50)) kind = MPI_DISTRIBUTE_NONE;
    int argument = MPI_DISTRIBUTE_DFLT_DARG;
    if (kind == MPI_DISTRIBUTE_BLOCK && random.percent(40)) {
      argument = (size + processes - 1) / processes + static_cast<int>(random.below(2));
    }
    if (kind == MPI_DISTRIBUTE_CYCLIC && random.percent(60)) {
      argument = static_cast<int>(random.between(1, 3));
    }
    result.sizes.push_back(size);
    result.kinds.push_back(kind);
    result.arguments.push_back(argument);
    result.processes.push_back(processes);
  }
  result.order = random.percent(50) ? MPI_ORDER_C : MPI_ORDER_FORTRAN;
  return result;
}

TypeModel random_memory_layer(Random& random, const TypeModel& inner) {
  const std::int64_t count = random.percent(5) ? 0 : random.between(1, 4);
  const std::int64_t length = random.percent(5) ? 0 : random.between(1, 4);
  const auto lengths = block_lengths(random, count, false);
  auto offsets = ascending_offsets(random, lengths);
  const std::int64_t hop = std::max<std::int64_t>({1, span(inner), inner.extent()});
  auto equal_offsets =
      ascending_offsets(random, std::vector<std::int64_t>(static_cast<std::size_t>(count), length));
  scatter(random, offsets);
  scatter(random, equal_offsets);
  std::vector<std::int64_t> bytes, equal_bytes;
  for (const std::int64_t offset : offsets) bytes.push_back(offset * hop + random.below(2));
  for (const std::int64_t offset : equal_offsets) equal_bytes.push_back(offset * hop);
  const std::int64_t sign = random.percent(30) ? -1 : 1;
  switch (random.below(12)) {
    case 0:
      return contiguous(count, inner);
    case 1:
      return vector(count, length, sign * (length + random.below(4)), inner);
    case 2:
      return hvector(count, length, sign * (length * hop + random.below(9)), inner);
    case 3:
      return indexed(lengths, offsets, inner);
    case 4:
      return hindexed(lengths, bytes, inner);
    case 5:
      return indexed_block(length, equal_offsets, inner);
    case 6:
      return hindexed_block(length, equal_bytes, inner);
    case 7: {
      const TypeModel other = random.percent(50) ? random_basic(random) : inner;
      std::vector<TypeModel> members;
      std::vector<std::int64_t> at;
      std::int64_t next = random.percent(30) ? -32 : 0;
      for (std::size_t i = 0; i < lengths.size(); ++i) {
        members.push_back(i % 2 == 0 ? inner : other);
        const TypeModel& member = members.back();
        const std::int64_t first = member.first_byte(lengths[i]);
        at.push_back(next - first);
        next += member.end_byte(lengths[i]) - first + random.below(5);
      }
      return structure(lengths, at, members, random.percent(70) ? 0 : -8,
                       std::max<std::int64_t>(1, next) + random.below(16) + 8);
    }
    case 8:
      return resized(random.between(-8, 8), hop + random.below(9), inner);
    case 9:
      return subarray(random_subarray(random), inner);
    case 10: {
      const int processes = static_cast<int>(random.between(1, 4));
      ArrayDistribution distribution = random_distribution(random, processes, 6);
      distribution.rank = static_cast<int>(random.below(processes));
      return darray(distribution, inner);
    }
    default:
      return dup(inner);
  }
}

/// One more layer on a type that is part of a view; offsets are whole extents of the etype.
TypeModel random_file_layer(Random& random, const TypeModel& inner) {
  const std::int64_t count = random.between(1, 4);
  const std::int64_t length = random.between(1, 3);
  const auto lengths = block_lengths(random, count, false);
  const auto offsets = ascending_offsets(random, lengths);
  const auto equal_offsets =
      ascending_offsets(random, std::vector<std::int64_t>(static_cast<std::size_t>(count), length));
  const std::int64_t extent = inner.extent();
  auto bytes = offsets;
  for (std::int64_t& offset : bytes) offset *= extent;
  auto equal_bytes = equal_offsets;
  for (std::int64_t& offset : equal_bytes) offset *= extent;
  switch (random.below(11)) {
    case 0:
      return contiguous(count, inner);
    case 1:
      return vector(count, length, length + random.below(4), inner);
    case 2:
      return hvector(count, length, (length + random.below(4)) * extent, inner);
    case 3:
      return indexed(lengths, offsets, inner);
    case 4:
      return hindexed(lengths, bytes, inner);
    case 5:
      return indexed_block(length, equal_offsets, inner);
    case 6:
      return hindexed_block(length, equal_bytes, inner);
    case 7: {
      const std::vector<TypeModel> members(lengths.size(), inner);
      const std::int64_t end = bytes.back() + lengths.back() * extent;
      return structure(lengths, bytes, members, 0,
                       std::max<std::int64_t>(end, extent) + random.below(3) * extent);
    }
    case 8:
      return resized(0, extent * random.between(1, 3), inner);
    case 9:
      return subarray(random_subarray(random), inner);
    default:
      return dup(inner);
  }
}

TypeModel random_etype(Random& random) {
  TypeModel type = random_basic(random);
  if (random.percent(25)) type = contiguous(random.between(1, 5), type);
  if (random.percent(10)) type = resized(0, type.extent() + random.between(1, 8), type);
  if (random.percent(10)) type = vector(2, 1, 2, type);
  return type;
}

bool fits(const TypeModel& type) {
  return type.size() <= type_bytes_max && span(type) <= type_span_max &&
         std::abs(type.extent()) <= type_span_max;
}

TypeModel random_filetype(Random& random, const TypeModel& etype) {
  TypeModel type = etype;
  const std::int64_t depth = random.between(1, 3);
  for (std::int64_t i = 0; i < depth; ++i) {
    const TypeModel next = random_file_layer(random, type);
    if (next.size() > 0 && next.ascending() && fits(next)) type = next;
  }
  return type;
}

/// Ranks own units of a tile at random; each rank's filetype names its units in one of several
/// ways.
std::vector<TypeModel> random_owners(Random& random, const TypeModel& etype, int ranks) {
  const std::int64_t units = random.between(ranks, ranks * 6);
  const std::int64_t length = random.between(1, 4);
  std::vector<std::vector<std::int64_t>> owned(static_cast<std::size_t>(ranks));
  for (std::int64_t unit = 0; unit < units; ++unit) {
    const std::int64_t owner = random.below(ranks + (random.percent(20) ? 1 : 0));
    if (owner < ranks) owned[static_cast<std::size_t>(owner)].push_back(unit * length);
  }
  const std::int64_t tile = units * length * etype.extent();
  std::vector<TypeModel> result;
  for (const auto& offsets : owned) {
    auto bytes = offsets;
    for (std::int64_t& offset : bytes) offset *= etype.extent();
    const std::vector<std::int64_t> lengths(offsets.size(), length);
    const std::vector<TypeModel> members(offsets.size(), etype);
    TypeModel type;
    switch (random.below(5)) {
      case 0:
        type = indexed(lengths, offsets, etype);
        break;
      case 1:
        type = hindexed(lengths, bytes, etype);
        break;
      case 2:
        type = indexed_block(length, offsets, etype);
        break;
      case 3:
        type = hindexed_block(length, bytes, etype);
        break;
      default:
        type = structure(lengths, bytes, members, 0, tile);
        break;
    }
    result.push_back(resized(0, tile, type));
  }
  return result;
}

}  // namespace

TypeModel memory_type(Random& random, int depth, bool distinct) {
  TypeModel type = random.percent(5) ? short_int() : random_basic(random);
  for (int i = 0; i < depth; ++i) {
    TypeModel next = random_memory_layer(random, type);
    if (fits(next) && (!distinct || next.distinct(1))) type = std::move(next);
  }
  return type;
}

TypeModel mild_memory_type(Random& random) {
  const TypeModel element = random_basic(random);
  const std::int64_t count = random.between(1, 4);
  const std::int64_t length = random.between(1, 4);
  const std::vector<std::int64_t> lengths(static_cast<std::size_t>(count), length);
  switch (random.below(6)) {
    case 0:
      return contiguous(count, element);
    case 1:
      return vector(count, length, length + random.below(4), element);
    case 2:
      return indexed_block(length, ascending_offsets(random, lengths), element);
    case 3:
      return subarray(random_subarray(random), element);
    default:
      return element;
  }
}

std::int64_t ViewModel::data_before(std::int64_t end) const {
  if (filetype.size() == 0) return 0;
  std::int64_t low = 0, high = std::max<std::int64_t>(0, end - displacement) + 1;
  while (low < high) {
    const std::int64_t middle = (low + high) / 2;
    if (offset(middle) < end)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

Views byte_views(int ranks) {
  const TypeModel byte = basic(basics[0]);
  return {std::vector<ViewModel>(static_cast<std::size_t>(ranks), {0, byte, byte}), true};
}

Views random_views(Random& random, int ranks) {
  const TypeModel etype = random_etype(random);
  const std::int64_t start = random.percent(40) ? 0 : random.between(0, 5000);
  const std::int64_t length = random.percent(70) ? random.between(1, 6) : random.between(50, 500);
  Views views;
  views.uniform = false;
  const auto add = [&](std::int64_t displacement, const TypeModel& filetype) {
    views.of_rank.push_back({displacement, etype, filetype});
  };
  switch (random.below(8)) {
    case 0: {  // Everybody sees the same bytes.
      for (int rank = 0; rank < ranks; ++rank) add(start, etype);
      views.uniform = true;
      break;
    }
    case 1: {
      const TypeModel filetype = random_filetype(random, etype);
      for (int rank = 0; rank < ranks; ++rank) add(start, filetype);
      views.uniform = true;
      break;
    }
    case 2: {  // Blocks dealt out in turns, the displacement telling ranks apart.
      const TypeModel filetype =
          resized(0, length * ranks * etype.extent(), contiguous(length, etype));
      for (int rank = 0; rank < ranks; ++rank) {
        add(start + rank * length * etype.extent(), filetype);
      }
      break;
    }
    case 3: {
      for (const TypeModel& filetype : random_owners(random, etype, ranks)) add(start, filetype);
      break;
    }
    case 4: {  // Segments.
      const TypeModel filetype = random.percent(50) ? etype : random_filetype(random, etype);
      const std::int64_t room = round_up(random.between(100, 20000), etype.extent());
      for (int rank = 0; rank < ranks; ++rank) add(start + rank * room, filetype);
      break;
    }
    case 5: {
      ArrayDistribution distribution = random_distribution(random, ranks, ranks > 3 ? 8 : 12);
      for (int rank = 0; rank < ranks; ++rank) {
        distribution.rank = rank;
        add(start, darray(distribution, etype));
      }
      break;
    }
    case 6: {  // Slabs of an array along one side.
      ArrayPart part = random_subarray(random);
      const auto side = static_cast<std::size_t>(random.below(part.sizes.size()));
      for (std::size_t d = 0; d < part.sizes.size(); ++d) {
        part.subsizes[d] = part.sizes[d];
        part.starts[d] = 0;
      }
      const int thickness = part.sizes[side];
      part.sizes[side] = thickness * ranks;
      part.subsizes[side] = thickness;
      for (int rank = 0; rank < ranks; ++rank) {
        part.starts[side] = rank * thickness;
        add(start, subarray(part, etype));
      }
      break;
    }
    default: {  // Each as it likes: overlapping, so good for reading.
      for (int rank = 0; rank < ranks; ++rank) {
        add(random.between(0, 3000), random_filetype(random, etype));
      }
      break;
    }
  }
  return views;
}

}  // namespace random_access
