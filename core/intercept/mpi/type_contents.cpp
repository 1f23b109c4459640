#include "core/intercept/mpi/type_contents.hpp"

namespace forebay {
namespace {

bool is_predefined_combiner(int combiner) {
  return combiner == MPI_COMBINER_NAMED || combiner == MPI_COMBINER_F90_REAL ||
         combiner == MPI_COMBINER_F90_COMPLEX || combiner == MPI_COMBINER_F90_INTEGER;
}

/// The successor of a constructor of MPI-1 for Fortran; `combiner` itself if it is none.
int successor(int combiner) {
  // Open MPI and the standard ABI have no such types any more, nor the names.
#if !defined(OPEN_MPI) && !defined(MPI_ABI_VERSION)
  switch (combiner) {
    case MPI_COMBINER_HVECTOR_INTEGER:
      return MPI_COMBINER_HVECTOR;
    case MPI_COMBINER_HINDEXED_INTEGER:
      return MPI_COMBINER_HINDEXED;
    case MPI_COMBINER_STRUCT_INTEGER:
      return MPI_COMBINER_STRUCT;
    default:
      break;
  }
#endif
  return combiner;
}

}  // namespace

TypeContents::TypeContents(MPI_Datatype datatype) {
#if MPI_VERSION >= 4
  MPI_Count integers = 0, addresses = 0, counts = 0, types = 0;
  PMPI_Type_get_envelope_c(datatype, &integers, &addresses, &counts, &types, &combiner_);
#else
  int integers = 0, addresses = 0, types = 0;
  PMPI_Type_get_envelope(datatype, &integers, &addresses, &types, &combiner_);
  const int counts = 0;
#endif
  if (is_predefined_combiner(combiner_)) return;
  large_ = counts > 0;
  integer_addresses_ = successor(combiner_) != combiner_;
  combiner_ = successor(combiner_);
  integers_.resize(static_cast<std::size_t>(integers));
  addresses_.resize(static_cast<std::size_t>(addresses));
  counts_.resize(static_cast<std::size_t>(counts));
  types_.resize(static_cast<std::size_t>(types));
#if MPI_VERSION >= 4
  PMPI_Type_get_contents_c(datatype, integers, addresses, counts, types, integers_.data(),
                           addresses_.data(), counts_.data(), types_.data());
#else
  PMPI_Type_get_contents(datatype, integers, addresses, types, integers_.data(), addresses_.data(),
                         types_.data());
#endif
}

TypeContents::~TypeContents() {
  for (MPI_Datatype& type : types_) {
    if (!is_predefined(type)) PMPI_Type_free(&type);
  }
}

std::vector<std::int64_t> TypeContents::next_ints(std::int64_t n) {
  std::vector<std::int64_t> result(static_cast<std::size_t>(n));
  for (std::int64_t& value : result) value = next_int();
  return result;
}

std::vector<std::int64_t> TypeContents::next_counts(std::int64_t n) {
  std::vector<std::int64_t> result(static_cast<std::size_t>(n));
  for (std::int64_t& value : result) value = next_count();
  return result;
}

std::vector<std::int64_t> TypeContents::next_addresses(std::int64_t n) {
  std::vector<std::int64_t> result(static_cast<std::size_t>(n));
  for (std::int64_t& value : result) value = next_address();
  return result;
}

bool is_predefined(MPI_Datatype datatype) {
  int combiner = 0;
#if MPI_VERSION >= 4
  // The plain query refuses types that were made by large-count constructors.
  MPI_Count integers = 0, addresses = 0, counts = 0, types = 0;
  PMPI_Type_get_envelope_c(datatype, &integers, &addresses, &counts, &types, &combiner);
#else
  int integers = 0, addresses = 0, types = 0;
  PMPI_Type_get_envelope(datatype, &integers, &addresses, &types, &combiner);
#endif
  return is_predefined_combiner(combiner);
}

}  // namespace forebay
