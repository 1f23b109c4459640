#pragma once

#include <mpi.h>

#include <memory>

#include "core/intercept/mpi/datatype_tree.hpp"

namespace forebay {

/// MPI_File_open and MPI_File_close, traced where the process is.
int wrapped_open(MPI_Comm comm, const char* filename, int amode, MPI_Info info,
                 MPI_File* fh) noexcept;
int wrapped_close(MPI_File* fh) noexcept;

/// MPI_File_open: opens the real file, whose handle is the program's, and Forebay's shadow beside
/// it. Whether there is a shadow is agreed by all ranks.
int intercepted_open(MPI_Comm comm, const char* filename, int amode, MPI_Info info,
                     MPI_File* fh) noexcept;

/// MPI_File_close: ends the shadow, closes the real file, and writes the report.
int intercepted_close(MPI_File* fh) noexcept;

/// One datatype reader for all files that are open, gone when the last is closed.
std::shared_ptr<const DatatypeReader> datatype_reader();

}  // namespace forebay
