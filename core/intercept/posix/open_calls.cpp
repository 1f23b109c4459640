// The calls that make, copy and end descriptors.

#include <dirent.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <climits>
#include <cstdarg>
#include <cstdint>
#include <cstring>
#include <system_error>

#include "core/intercept/posix/all_descriptors.hpp"
#include "core/intercept/posix/endings.hpp"
#include "core/intercept/posix/exported.hpp"
#include "core/intercept/posix/internal_descriptors.hpp"
#include "core/intercept/posix/managed_files.hpp"
#include "core/intercept/posix/real_calls.hpp"

namespace forebay::posix {
namespace {

/// The argument behind the flags; 0 where they take none.
mode_t mode_in(int flags, va_list rest) noexcept {
  const bool takes_mode = (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE;
  return takes_mode ? va_arg(rest, mode_t) : 0;
}

/// A thread may be cancelled in it.
template <typename Open>
int open_by(Open open, int directory, const char* path, int flags) {
  const int fd = with_all_descriptors(open);
  if (fd >= 0) opened(fd, directory, path, flags);
  return fd;
}

int after_copy(int descriptor, int copy) noexcept {
  if (copy >= 0 && listed(descriptor) != nullptr) duplicated(descriptor, copy);
  return copy;
}

/// F_DUPFD makes a copy, and F_SETFL may ask for reads past every cache.
int after_fcntl(int fd, int command, void* argument, int result) noexcept {
  if (command == F_DUPFD || command == F_DUPFD_CLOEXEC) return after_copy(fd, result);
  const bool is_direct = (reinterpret_cast<intptr_t>(argument) & O_DIRECT) != 0;
  if (command == F_SETFL && is_direct && result != -1) past_caches(fd);
  return result;
}

/// As the kernel answers for a number that nothing is behind.
int not_open() noexcept {
  errno = EBADF;
  return -1;
}

template <typename Call>
int fcntl_by(Call* plain, int fd, int command, void* argument) {
  if (is_hidden(fd)) return not_open();
  if (command == F_SETLK || command == F_SETLKW) takes_record_lock();
  if (command == F_SETLEASE && reinterpret_cast<std::intptr_t>(argument) == F_WRLCK) {
    before_write_lease(fd);
  }
  const auto call = [=] { return plain(fd, command, argument); };
  const bool copies = command == F_DUPFD || command == F_DUPFD_CLOEXEC;
  return after_fcntl(fd, command, argument, copies ? with_all_descriptors(call) : call());
}

/// dup2 and dup3 onto a number of ours that is in use: the kernel's answer where the number is in
/// the making.
int number_is_taken() noexcept {
  errno = EBUSY;
  return -1;
}

int closed_range(unsigned first, unsigned last, int flags) {
  if (real().close_range == nullptr) {  // Before glibc 2.34.
    errno = ENOSYS;
    return -1;
  }
  if (first > last) return real().close_range(first, last, flags);
  if ((flags & CLOSE_RANGE_UNSHARE) != 0) before_unsharing(true);
  if ((flags & CLOSE_RANGE_CLOEXEC) != 0) return real().close_range(first, last, flags);
  closing_range(first, last);
  // Around our own.
  for (unsigned from = first;;) {
    const unsigned ours = next_internal(from, std::min(last, most_descriptors - 1));
    if (ours >= most_descriptors || ours > last) return real().close_range(from, last, flags);
    if (ours > from && real().close_range(from, ours - 1, flags) != 0) return -1;
    if (ours == last) return 0;
    from = ours + 1;
  }
}

/// No thread is cancelled in it, as in the one call for all.
long closed_one(unsigned number) { return ::syscall(SYS_close, number); }

/// The directory of what is open, in which the kernel goes on behind the last number that it told,
/// whatever is closed meanwhile. Where nothing more may be open, some from `first` on makes way.
int list_of_open(unsigned first) {
  for (unsigned next = first;; ++next) {
    const long list =
        ::syscall(SYS_openat, AT_FDCWD, "/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    if (list >= 0 || errno != EMFILE) return static_cast<int>(list);
    while (next < most_descriptors && (is_internal(static_cast<int>(next)) || closed_one(next))) {
      ++next;
    }
    if (next >= most_descriptors) return -1;
  }
}

/// All from `first` on that are not ours, where the kernel has no call for it. False: it does not
/// tell what is open either.
bool closed_one_by_one(unsigned first) {
  const int list = list_of_open(first);
  if (list < 0) return false;
  alignas(dirent64) std::array<char, 1024> entries;
  ssize_t filled = 0;
  while ((filled = ::getdents64(list, entries.data(), entries.size())) > 0) {
    for (ssize_t at = 0; at < filled;) {
      const auto* entry = reinterpret_cast<const dirent64*>(entries.data() + at);
      at += entry->d_reclen;
      unsigned number = 0;
      const char* const name = entry->d_name;
      if (std::from_chars(name, name + std::strlen(name), number).ec != std::errc()) continue;
      const auto open = static_cast<int>(number);
      if (number >= first && open != list && !is_internal(open)) closed_one(number);
    }
  }
  closed_one(static_cast<unsigned>(list));
  return filled == 0;
}

}  // namespace
}  // namespace forebay::posix

using namespace forebay::posix;

extern "C" {

FOREBAY_EXPORTED int open(const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = mode_in(flags, rest);
  va_end(rest);
  return open_by([=] { return real().open(path, flags, mode); }, AT_FDCWD, path, flags);
}

FOREBAY_EXPORTED int open64(const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = mode_in(flags, rest);
  va_end(rest);
  return open_by([=] { return real().open64(path, flags, mode); }, AT_FDCWD, path, flags);
}

FOREBAY_EXPORTED int openat(int directory, const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = mode_in(flags, rest);
  va_end(rest);
  return open_by([=] { return real().openat(directory, path, flags, mode); }, directory, path,
                 flags);
}

FOREBAY_EXPORTED int openat64(int directory, const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = mode_in(flags, rest);
  va_end(rest);
  return open_by([=] { return real().openat64(directory, path, flags, mode); }, directory, path,
                 flags);
}

FOREBAY_EXPORTED int creat(const char* path, mode_t mode) {
  constexpr int flags = O_CREAT | O_WRONLY | O_TRUNC;
  return open_by([=] { return real().creat(path, mode); }, AT_FDCWD, path, flags);
}

FOREBAY_EXPORTED int creat64(const char* path, mode_t mode) {
  constexpr int flags = O_CREAT | O_WRONLY | O_TRUNC;
  return open_by([=] { return real().creat64(path, mode); }, AT_FDCWD, path, flags);
}

// Programs that are built where the C library has no such call may have one of their own, or call
// the kernel, which is not seen.
FOREBAY_EXPORTED int openat2(int directory, const char* path, const open_how* how, size_t size) {
  const auto open = [=] {
    const auto call = real().openat2;
    return call != nullptr ? call(directory, path, how, size)
                           : static_cast<int>(::syscall(SYS_openat2, directory, path, how, size));
  };
  const int fd = with_all_descriptors(open);
  if (fd < 0) return fd;
  if ((how->resolve & RESOLVE_IN_ROOT) != 0) {
    while (*path == '/') ++path;
  }
  opened(fd, directory, path, static_cast<int>(how->flags));
  return fd;
}

// What _FORTIFY_SOURCE makes of the plain calls.
// NOLINTBEGIN(bugprone-reserved-identifier): the names are the C library's.
FOREBAY_EXPORTED int __open_2(const char* path, int flags) {
  return open_by([=] { return real().open_2(path, flags); }, AT_FDCWD, path, flags);
}

FOREBAY_EXPORTED int __open64_2(const char* path, int flags) {
  return open_by([=] { return real().open64_2(path, flags); }, AT_FDCWD, path, flags);
}

FOREBAY_EXPORTED int __openat_2(int directory, const char* path, int flags) {
  return open_by([=] { return real().openat_2(directory, path, flags); }, directory, path, flags);
}

FOREBAY_EXPORTED int __openat64_2(int directory, const char* path, int flags) {
  return open_by([=] { return real().openat64_2(directory, path, flags); }, directory, path, flags);
}
// NOLINTEND(bugprone-reserved-identifier)

FOREBAY_EXPORTED int close(int fd) {
  if (is_kept(fd)) return not_open();
  if (listed(fd) != nullptr) closing(fd);
  return real().close(fd);
}

FOREBAY_EXPORTED int close_range(unsigned first, unsigned last, int flags) {
  return closed_range(first, last, flags);
}

FOREBAY_EXPORTED void closefrom(int first) {
  const auto from = static_cast<unsigned>(std::max(first, 0));
  if (closed_range(from, UINT_MAX, 0) == 0) return;
  closing_range(from, UINT_MAX);
  // The C library's own way would take ours along.
  if (!closed_one_by_one(from)) real().closefrom(first);
}

FOREBAY_EXPORTED int dup(int fd) {
  if (is_hidden(fd)) return not_open();
  return after_copy(fd, with_all_descriptors([=] { return real().dup(fd); }));
}

FOREBAY_EXPORTED int dup2(int fd, int copy) {
  if (is_hidden(fd)) return not_open();
  if (is_internal(copy) && !give_way(copy)) return number_is_taken();
  if (fd != copy && listed(copy) != nullptr) closing(copy);
  return fd == copy ? real().dup2(fd, copy) : after_copy(fd, real().dup2(fd, copy));
}

FOREBAY_EXPORTED int dup3(int fd, int copy, int flags) {
  const bool is_valid = fd != copy && (flags & ~O_CLOEXEC) == 0;
  if (is_hidden(fd) && is_valid) return not_open();
  if (is_internal(copy) && !give_way(copy)) return number_is_taken();
  if (fd != copy && listed(copy) != nullptr) closing(copy);
  return after_copy(fd, real().dup3(fd, copy, flags));
}

// All commands take one argument of the size of a pointer or less, or none (fcntl(2)).
FOREBAY_EXPORTED int fcntl(int fd, int command, ...) {
  va_list rest;
  va_start(rest, command);
  void* argument = va_arg(rest, void*);
  va_end(rest);
  return fcntl_by(real().fcntl, fd, command, argument);
}

FOREBAY_EXPORTED int fcntl64(int fd, int command, ...) {
  va_list rest;
  va_start(rest, command);
  void* argument = va_arg(rest, void*);
  va_end(rest);
  return fcntl_by(real().fcntl64, fd, command, argument);
}

// The C library calls fcntl for them by itself.

FOREBAY_EXPORTED int lockf(int fd, int command, off_t length) {
  takes_record_lock();
  return real().lockf(fd, command, length);
}

FOREBAY_EXPORTED int lockf64(int fd, int command, off64_t length) FOREBAY_SAME_AS(lockf);

}  // extern "C"
