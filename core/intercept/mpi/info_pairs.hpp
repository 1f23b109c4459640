#pragma once

#include <mpi.h>

#include "core/model/hints.hpp"

namespace forebay {

/// Every key and value of `info`; none for MPI_INFO_NULL.
HintPairs pairs_of(MPI_Info info);

/// A new MPI_Info of these keys and values, the caller's to free.
MPI_Info info_of(const HintPairs& pairs);

}  // namespace forebay
