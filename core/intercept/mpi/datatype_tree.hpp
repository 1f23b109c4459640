#pragma once

#include <mpi.h>

#include <memory>
#include <tl/expected.hpp>

#include "core/model/extent.hpp"
#include "core/model/strided_tree.hpp"

namespace forebay {

/// What Forebay needs to know of an MPI datatype.
struct FlatType {
  StridedTree tree;  ///< The bytes selected, in type-map order.
  Bytes extent = 0;  ///< Distance of two copies.

  /// Copies without end, the first at `displacement`: a file view, or a buffer at that address.
  TiledTree tiled(Bytes displacement) const { return {tree, displacement, extent}; }
};

/// Turns MPI datatypes into trees.
class DatatypeReader {
 public:
  DatatypeReader();
  ~DatatypeReader();
  DatatypeReader(const DatatypeReader&) = delete;
  DatatypeReader& operator=(const DatatypeReader&) = delete;

  /// The bytes that a committed `datatype` selects, found by MPI_Type_get_envelope and _contents
  /// for every combiner of MPI 4.0. Kept as an attribute of the datatype, so that only the first
  /// call costs more than O(1). Errors, as MPI error codes: MPI_ERR_TYPE for the null datatype and
  /// what the MPI says of one that is not committed; MPI_ERR_UNSUPPORTED_OPERATION for a predefined
  /// type whose layout is not known; MPI_ERR_ARG for one with bytes beyond 2^62.
  tl::expected<std::shared_ptr<const FlatType>, int> read(MPI_Datatype datatype) const;

 private:
  /// MPI_SUCCESS if committed. MPI has no call for that; asked to pack none of them, it tells.
  int check_committed(MPI_Datatype datatype) const;

  MPI_Comm probe_ = MPI_COMM_NULL;  ///< Ours alone, returns errors.
};

}  // namespace forebay
