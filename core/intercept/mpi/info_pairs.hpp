#pragma once

#include <mpi.h>

#include "core/model/hints.hpp"

namespace forebay {

/// Every key and value of `info`; none for MPI_INFO_NULL.
HintPairs pairs_of(MPI_Info info);

}  // namespace forebay
