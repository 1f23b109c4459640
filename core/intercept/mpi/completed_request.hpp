#pragma once

#include <mpi.h>

#include "core/model/extent.hpp"

namespace forebay {

/// A request that is complete and whose status tells `moved` bytes: what a nonblocking data call
/// returns, since the transfer is over when it returns. Every MPI_Wait and MPI_Test call works on
/// it. Returns an MPI error code.
int make_completed_request(Bytes moved, MPI_Request* request);

}  // namespace forebay
