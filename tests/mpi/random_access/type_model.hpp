#pragma once

#include <mpi.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace random_access {

/// A datatype twice: as its typemap, byte by byte, worked out here from the definitions of MPI 4.0
/// chapter 5, and as the recipe that builds it with MPI. The two know nothing of each other.
struct TypeModel {
  std::vector<std::int64_t> bytes;  ///< Displacement of each byte of data, in type map order.
  std::vector<int> elements;        ///< Size of each basic element, in the same order.
  std::int64_t lower = 0;
  std::int64_t upper = 0;
  /// Not to be given to MPI_Get_elements: has MPI_SHORT_INT, of which MPIs differ how many elements
  /// it is, or an empty part, a struct, array or duplicate, which MPICH 4.0.2 fails an assertion
  /// over.
  bool uncountable = false;
  std::string text;                    ///< For people who reduce a failure.
  std::function<MPI_Datatype()> make;  ///< A new handle, not committed, to be freed.

  std::int64_t size() const { return static_cast<std::int64_t>(bytes.size()); }
  std::int64_t extent() const { return upper - lower; }
  /// First and one past the last byte of `count` copies; both 0 if there is no data.
  std::int64_t first_byte() const;
  std::int64_t end_byte(std::int64_t count) const;
  std::int64_t first_byte(std::int64_t count) const;
  /// Displacement of byte `position` of as many copies as it takes.
  std::int64_t displacement(std::int64_t position) const {
    return position / size() * extent() + bytes[static_cast<std::size_t>(position % size())];
  }
  /// No byte is named twice by `count` copies: may be read into.
  bool distinct(std::int64_t count) const;
  /// May be a filetype that is written through: displacements ascend, from copy to copy too.
  bool ascending() const;
};

struct Basic {
  MPI_Datatype type;
  const char* name;
  int size;
};

TypeModel basic(const Basic& which);
/// MPI_SHORT_INT: two bytes, a hole of two, four bytes.
TypeModel short_int();
TypeModel dup(const TypeModel& inner);
TypeModel contiguous(std::int64_t count, const TypeModel& inner);
TypeModel vector(std::int64_t count, std::int64_t length, std::int64_t stride,
                 const TypeModel& inner);
TypeModel hvector(std::int64_t count, std::int64_t length, std::int64_t stride,
                  const TypeModel& inner);
/// Offsets in extents of `inner`.
TypeModel indexed(const std::vector<std::int64_t>& lengths,
                  const std::vector<std::int64_t>& offsets, const TypeModel& inner);
TypeModel indexed_block(std::int64_t length, const std::vector<std::int64_t>& offsets,
                        const TypeModel& inner);
/// Offsets in bytes.
TypeModel hindexed(const std::vector<std::int64_t>& lengths,
                   const std::vector<std::int64_t>& offsets, const TypeModel& inner);
TypeModel hindexed_block(std::int64_t length, const std::vector<std::int64_t>& offsets,
                         const TypeModel& inner);
/// A struct whose bounds are set by a resize, because what padding an MPI adds at the end of a
/// struct is its own business.
TypeModel structure(const std::vector<std::int64_t>& lengths,
                    const std::vector<std::int64_t>& offsets, const std::vector<TypeModel>& inner,
                    std::int64_t lower, std::int64_t extent);
TypeModel resized(std::int64_t lower, std::int64_t extent, const TypeModel& inner);

struct ArrayPart {
  std::vector<int> sizes, subsizes, starts;
  int order = MPI_ORDER_C;
};
TypeModel subarray(const ArrayPart& part, const TypeModel& inner);

struct ArrayDistribution {
  int rank = 0;
  std::vector<int> sizes, kinds, arguments, processes;
  int order = MPI_ORDER_C;
};
TypeModel darray(const ArrayDistribution& distribution, const TypeModel& inner);

}  // namespace random_access
