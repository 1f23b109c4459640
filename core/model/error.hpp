#pragma once

#include <cstdint>
#include <string>
#include <tl/expected.hpp>
#include <utility>

namespace forebay {

/// What went wrong, in the terms a caller can act on. Each kind maps to one MPI error class
/// (MPI 4.0, table 14.3), which is done at the edge in core/intercept/mpi. The numeric order is the
/// severity order: when ranks of a collective call fail differently, the largest kind is what all
/// of them report.
enum class ErrorKind : std::int32_t {
  none = 0,          ///< Only on the wire between ranks: this rank did not fail.
  invalid_argument,  ///< The caller passed something that cannot be carried out. MPI_ERR_ARG
  unsupported,       ///< Legal, but not carried out by this code. MPI_ERR_UNSUPPORTED_OPERATION
  no_such_file,      ///< MPI_ERR_NO_SUCH_FILE
  exists,            ///< MPI_ERR_FILE_EXISTS
  access,            ///< Permission denied. MPI_ERR_ACCESS
  read_only,         ///< Read-only file or file system. MPI_ERR_READ_ONLY
  quota,             ///< MPI_ERR_QUOTA
  no_space,          ///< MPI_ERR_NO_SPACE
  no_memory,         ///< MPI_ERR_NO_MEM
  io,                ///< The device or file system failed. MPI_ERR_IO
  internal,          ///< A defect of Forebay. MPI_ERR_INTERN
};

/// An operating error: its kind, the errno it came from (0 if none), and what was being done, for
/// the message a person reads ("write 1048576 bytes at 0 to /scratch/a: No space left on device").
struct Error {
  ErrorKind kind = ErrorKind::none;
  int os_errno = 0;
  std::string what;
};

template <typename T>
using Result = tl::expected<T, Error>;
using Status = Result<void>;

/// The error for an errno value; `doing` says what was being done.
Error error_from_errno(int os_errno, const std::string& doing);

/// The same, to be returned as a Result or Status.
inline tl::unexpected<Error> fail(int os_errno, const std::string& doing) {
  return tl::unexpected(error_from_errno(os_errno, doing));
}

/// The same error, to be returned, with `where` before its message: a path, to which it belongs.
inline tl::unexpected<Error> fail_in(const std::string& where, Error error) {
  error.what = where + ": " + error.what;
  return tl::unexpected(std::move(error));
}

/// A one-line message for a person.
std::string to_string(const Error& error);

}  // namespace forebay
