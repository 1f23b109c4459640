#include "core/model/error.hpp"

#include <cerrno>
#include <system_error>

namespace forebay {

Error error_from_errno(int os_errno, const std::string& doing) {
  const auto kind = [os_errno] {
    switch (os_errno) {
      case ENOSPC:
        return ErrorKind::no_space;
      case EDQUOT:
        return ErrorKind::quota;
      case EROFS:
        return ErrorKind::read_only;
      case EACCES:
      case EPERM:
        return ErrorKind::access;
      case ENOENT:
        return ErrorKind::no_such_file;
      case EEXIST:
        return ErrorKind::exists;
      case ENOMEM:
        return ErrorKind::no_memory;
      case EINVAL:
        return ErrorKind::invalid_argument;
      case ENOTSUP:
      case ENOSYS:
        return ErrorKind::unsupported;
      default:  // EFBIG too, as in ROMIO: to make room would not help.
        return ErrorKind::io;
    }
  }();
  return Error{kind, os_errno, doing};
}

std::string to_string(const Error& error) {
  if (error.os_errno == 0) return error.what;
  return error.what + ": " + std::system_category().message(error.os_errno);
}

}  // namespace forebay
