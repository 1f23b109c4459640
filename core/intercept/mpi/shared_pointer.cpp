#include "core/intercept/mpi/shared_pointer.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <limits>
#include <utility>

namespace forebay {
namespace {

/// Waits for an exclusive lock on the whole file, or releases it (F_WRLCK, F_UNLCK). 0, or errno.
int set_lock(int fd, short kind) {
  struct flock lock = {};
  lock.l_type = kind;
  lock.l_whence = SEEK_SET;
  while (fcntl(fd, F_OFD_SETLKW, &lock) != 0) {
    if (errno != EINTR) return errno;
  }
  return 0;
}

/// The process may not make files there, which holds for all ranks of a node alike.
bool is_forbidden(int os_errno) {
  return os_errno == EACCES || os_errno == EPERM || os_errno == EROFS;
}

}  // namespace

SharedPointer::SharedPointer(std::string hidden_path, std::string memory_path, Bytes initial)
    : path_(std::move(hidden_path)), memory_path_(std::move(memory_path)), initial_(initial) {}

SharedPointer::~SharedPointer() {
  if (fd_ >= 0) close(fd_);
}

int SharedPointer::open_file() {
  constexpr int flags = O_RDWR | O_CREAT | O_CLOEXEC;
  fd_ = open(path_.c_str(), flags, 0600);
  if (fd_ < 0 && is_forbidden(errno) && !memory_path_.empty()) {
    fd_ = open(memory_path_.c_str(), flags, 0600);
  }
  return fd_ < 0 ? errno : 0;
}

template <typename Change>
Status SharedPointer::locked(Change&& change) {
  const std::lock_guard guard(mutex_);
  const std::string doing = "shared file pointer in " + path_;
  if (fd_ < 0) {
    if (const int failed = open_file(); failed != 0) {
      return fail(failed, doing);
    }
  }
  if (const int failed = set_lock(fd_, F_WRLCK); failed != 0) {
    return fail(failed, doing);
  }
  Status result;
  Bytes position = initial_;
  const ssize_t got = pread(fd_, &position, sizeof position, 0);
  if (got != 0 && got != sizeof position) {
    result = fail(got < 0 ? errno : EIO, doing);
  } else {
    const Bytes next = change(position);
    const bool same = got == sizeof position && next == position;
    if (!same && pwrite(fd_, &next, sizeof next, 0) != sizeof next) {
      result = fail(errno, doing);
    }
  }
  set_lock(fd_, F_UNLCK);
  return result;
}

Result<Bytes> SharedPointer::fetch_and_add(Bytes amount) {
  Bytes before = 0;
  const Status done = locked([&](Bytes position) {
    before = position;
    return position + std::min(amount, std::numeric_limits<Bytes>::max() - position);
  });
  if (!done) return tl::unexpected(done.error());
  return before;
}

Result<Bytes> SharedPointer::get() { return fetch_and_add(0); }

Status SharedPointer::set(Bytes position) {
  return locked([&](Bytes) { return position; });
}

bool SharedPointer::used() const {
  const std::lock_guard guard(mutex_);
  return fd_ >= 0;
}

void SharedPointer::remove() {
  // Another rank may have made it; of the two, one is there.
  if (unlink(path_.c_str()) != 0 && !memory_path_.empty()) unlink(memory_path_.c_str());
}

}  // namespace forebay
