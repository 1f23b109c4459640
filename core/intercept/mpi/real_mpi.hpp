#pragma once

#include <mpi.h>

namespace forebay {

/// The MPI library's own MPI_File_* functions. A plain call to PMPI_File_open from here would find
/// the preloaded trampoline of that name and come back to us; these pointers do not.
struct RealMpi {
#define FOREBAY_REAL(name, result, parameters) result(*name) parameters = nullptr;
#include "real_functions.inc"
#undef FOREBAY_REAL
};

/// Valid after load_real_mpi.
const RealMpi& real();

/// Finds the functions in the MPI library with dlopen handle `library`. False if one is missing:
/// the library is then older than the header this back end was compiled with.
bool load_real_mpi(void* library);

}  // namespace forebay
