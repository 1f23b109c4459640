#pragma once

#include <mpi.h>

#include "core/intercept/mpi/open_file.hpp"

/// The MPI_File_* calls that Forebay carries out itself, each under its MPI name without prefix.
/// The open file stands for the handle, and counts are wide, so that a large-count variant shares
/// the function of its plain twin. Each raises its error through the file's error handler and
/// returns it. Own files only: the wrappers (wrappers.cpp) have sorted out everything else.
namespace forebay::own {

#include "implementations.inc"

}  // namespace forebay::own
