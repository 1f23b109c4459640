#pragma once

#include <mpi.h>

#include <cstdint>

namespace forebay {

/// The key by which the trace knows the shape of `datatype`, which it is told of if it was not
/// lately; 0: none. Kept as an attribute of the datatype. While the process is traced.
std::uint64_t traced_type(MPI_Datatype datatype);

}  // namespace forebay
