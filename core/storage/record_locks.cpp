#include "core/storage/record_locks.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <sstream>
#include <string>

#include "core/storage/text_file.hpp"

namespace forebay {

/// Asked for the open file description, which has none of the process's locks: one of these stands
/// in its way as one of another process does.
bool has_record_locks(int descriptor) {
  struct flock whole{};
  whole.l_type = F_WRLCK;
  whole.l_whence = SEEK_SET;
  if (::fcntl(descriptor, F_OFD_GETLK, &whole) != 0) return errno != EBADF;
  return whole.l_type != F_UNLCK;
}

/// By lines as "1: POSIX  ADVISORY  WRITE 1234 fe:00:99 0 EOF" (proc(5)).
bool process_has_record_locks() {
  const auto all = text_of("/proc/locks");
  if (!all) return true;
  std::istringstream lines(*all);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string number;
    std::string kind;
    std::string strength;
    std::string type;
    pid_t holder = 0;
    words >> number >> kind >> strength >> type >> holder;
    if (kind == "POSIX" && holder == ::getpid()) return true;
  }
  return false;
}

}  // namespace forebay
