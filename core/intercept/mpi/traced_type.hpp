#pragma once

#include <mpi.h>

#include <cstdint>

namespace forebay {

struct TracedType {
  std::uint64_t key = 0;  ///< By which the trace knows the shape; 0: none.
  std::int64_t size = 0;  ///< Bytes.
};

/// Of `datatype`. The trace is told of its shape if it was not lately. Kept as an attribute of the
/// datatype. While the process is traced.
TracedType traced_type(MPI_Datatype datatype);

}  // namespace forebay
