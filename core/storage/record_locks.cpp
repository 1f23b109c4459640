#include "core/storage/record_locks.hpp"

#include <fcntl.h>

namespace forebay {

/// Asked for the open file description, which has none of the process's locks: one of these stands
/// in its way as one of another process does.
bool has_record_locks(int descriptor) {
  struct flock whole{};
  whole.l_type = F_WRLCK;
  whole.l_whence = SEEK_SET;
  return ::fcntl(descriptor, F_OFD_GETLK, &whole) == 0 && whole.l_type != F_UNLCK;
}

}  // namespace forebay
