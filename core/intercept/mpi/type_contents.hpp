#pragma once

#include <mpi.h>

#include <cstdint>
#include <vector>

namespace forebay {

/// How a datatype was made: its combiner and the arguments of the constructor, in the one form that
/// serves plain and large-count constructors. Owns the inner datatypes that are its to free.
class TypeContents {
 public:
  explicit TypeContents(MPI_Datatype datatype);
  ~TypeContents();
  TypeContents(const TypeContents&) = delete;
  TypeContents& operator=(const TypeContents&) = delete;

  /// The constructors of MPI-1 that took displacements as Fortran integers count as their
  /// successors.
  int combiner() const { return combiner_; }
  const std::vector<MPI_Datatype>& types() const { return types_; }

  /// The next argument that the constructor declares as an int and keeps an int in its large-count
  /// variant (ndims, order, distributions).
  std::int64_t next_int() { return integers_.at(integer_++); }
  /// The next one that is an int, or an MPI_Count in the large-count variant.
  std::int64_t next_count() { return large_ ? counts_.at(count_++) : next_int(); }
  /// The next one that is a displacement in bytes: an MPI_Aint, or an MPI_Count in the large-count
  /// variant.
  std::int64_t next_address() {
    if (integer_addresses_) return next_int();
    return large_ ? counts_.at(count_++) : static_cast<std::int64_t>(addresses_.at(address_++));
  }
  std::vector<std::int64_t> next_ints(std::int64_t n);
  std::vector<std::int64_t> next_counts(std::int64_t n);
  std::vector<std::int64_t> next_addresses(std::int64_t n);

 private:
  int combiner_ = MPI_COMBINER_NAMED;
  bool large_ = false;
  bool integer_addresses_ = false;
  std::vector<int> integers_;
  std::vector<MPI_Aint> addresses_;
  std::vector<MPI_Count> counts_;
  std::vector<MPI_Datatype> types_;
  std::size_t integer_ = 0;
  std::size_t address_ = 0;
  std::size_t count_ = 0;
};

/// True if `datatype` is predefined, hence not to be freed: named, or made by the
/// MPI_Type_create_f90_* functions, which hand out predefined ones.
bool is_predefined(MPI_Datatype datatype);

}  // namespace forebay
