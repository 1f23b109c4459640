#include "core/intercept/mpi/error_class.hpp"

#include <mpi.h>

namespace forebay {

int error_class(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::none:
      return MPI_SUCCESS;
    case ErrorKind::invalid_argument:
      return MPI_ERR_ARG;
    case ErrorKind::unsupported:
      return MPI_ERR_UNSUPPORTED_OPERATION;
    case ErrorKind::no_such_file:
      return MPI_ERR_NO_SUCH_FILE;
    case ErrorKind::exists:
      return MPI_ERR_FILE_EXISTS;
    case ErrorKind::access:
      return MPI_ERR_ACCESS;
    case ErrorKind::read_only:
      return MPI_ERR_READ_ONLY;
    case ErrorKind::quota:
      return MPI_ERR_QUOTA;
    case ErrorKind::no_space:
      return MPI_ERR_NO_SPACE;
    case ErrorKind::no_memory:
      return MPI_ERR_NO_MEM;
    case ErrorKind::io:
      return MPI_ERR_IO;
    case ErrorKind::internal:
      return MPI_ERR_INTERN;
  }
  return MPI_ERR_INTERN;
}

}  // namespace forebay
