#pragma once

#include "core/model/error.hpp"

namespace forebay {

/// The MPI error class for an error (MPI 4.0, table 14.3); MPI_SUCCESS for none.
int error_class(ErrorKind kind);

}  // namespace forebay
