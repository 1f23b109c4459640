#pragma once

#include <mpi.h>

namespace forebay {

/// MPI_File_open: opens the real file, whose handle is the program's, and Forebay's shadow beside
/// it. Whether there is a shadow is agreed by all ranks.
int wrapped_open(MPI_Comm comm, const char* filename, int amode, MPI_Info info,
                 MPI_File* fh) noexcept;

/// MPI_File_close: ends the shadow, closes the real file, and writes the report.
int wrapped_close(MPI_File* fh) noexcept;

}  // namespace forebay
