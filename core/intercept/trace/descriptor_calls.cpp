// The calls that make, copy and end descriptors, and those that concern a file as a whole.

#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdarg>
#include <cstdint>
#include <cstdlib>

#include "core/intercept/posix/exported.hpp"
#include "core/intercept/trace/real_calls.hpp"
#include "core/intercept/trace/traced_call.hpp"

namespace forebay::trace {
namespace {

/// The argument behind the flags; 0 where they take none.
mode_t mode_in(int flags, va_list rest) noexcept {
  const bool takes_mode = (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE;
  return takes_mode ? va_arg(rest, mode_t) : 0;
}

template <typename Open>
[[gnu::always_inline]] inline int traced_open(TracedCall call, int directory, const char* path,
                                              int flags, Open&& open) {
  const auto descriptor_of = [](int fd) { return fd; };
  // `path` is the directory of such a file, which has no name.
  if (is_on() && (flags & O_TMPFILE) == O_TMPFILE) {
    return traced_opening_of(call, directory, flags, open, descriptor_of, [=](int fd) {
      return fd < 0 && path != nullptr ? key_of({path, std::strlen(path)}) : key_of_file(fd);
    });
  }
  return traced_opening(call, directory, path, flags, open, descriptor_of);
}

/// mkstemp and its kin, which put the name into `name` and open the file by `flags` and those that
/// make it. [mkstemp(3)]
template <typename Open>
[[gnu::always_inline]] inline int traced_making(TracedCall call, const char* name, int flags,
                                                Open&& open) {
  const int opened_by = (flags & ~O_ACCMODE) | O_RDWR | O_CREAT | O_EXCL;
  return traced_open(call, AT_FDCWD, name, opened_by, open);
}

/// dup and its kin. What `copy` was before has ended.
template <typename Copy>
[[gnu::always_inline]] inline int traced_copy(int fd, Copy&& body) {
  const bool is_file = is_traced(fd);
  const int made = is_file ? traced(TracedCall::dup, {fd, -1, 0, 0}, body) : body();
  if (made >= 0 && made != fd) is_copied(fd, made);
  return made;
}

/// Of a whole file, by its descriptor.
Told whole(int fd) { return {fd, -1, 0, 0}; }

/// Whether a command of fcntl sets a record lock. F_SETLK64 and its kin are the same numbers on
/// machines of 64 bits. [fcntl(2)]
bool sets_lock(int command) {
  return command == F_SETLK || command == F_SETLKW || command == F_OFD_SETLK ||
         command == F_OFD_SETLKW;
}

bool asks_for_lock(int command) { return command == F_GETLK || command == F_OFD_GETLK; }

/// What a call that has returned `result` was to lock, where the kernel has read that for sure. A
/// negative length is of what lies before. [fcntl(2)]
void tell_place(Told& told, const void* argument, int result) {
  if (result < 0 && errno != EAGAIN && errno != EINTR && errno != EDEADLK) return;
  const auto& lock = *static_cast<const struct flock*>(argument);
  if (lock.l_whence == SEEK_SET) told.offset = lock.l_start + std::min<off_t>(lock.l_len, 0);
  told.length = std::abs(lock.l_len);
}

template <typename Fcntl>
[[gnu::always_inline]] inline int traced_fcntl(int fd, int command, const void* argument,
                                               Fcntl&& body) {
  if (command == F_DUPFD || command == F_DUPFD_CLOEXEC) return traced_copy(fd, body);
  const bool sets = sets_lock(command);
  if (!sets && !asks_for_lock(command)) return body();
  // What asks finds another lock in the place of its own.
  Told told{fd, -1, -1, static_cast<std::uint8_t>(command)};
  return traced_by(TracedCall::fcntl, told, [&] {
    const int result = body();
    if (sets) tell_place(told, argument, result);
    return result;
  });
}

}  // namespace
}  // namespace forebay::trace

using namespace forebay::trace;
using forebay::TracedCall;

extern "C" {

FOREBAY_EXPORTED int open(const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = mode_in(flags, rest);
  va_end(rest);
  return traced_open(TracedCall::open, AT_FDCWD, path, flags,
                     [&] { return real().open(path, flags, mode); });
}

FOREBAY_EXPORTED int open64(const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = mode_in(flags, rest);
  va_end(rest);
  return traced_open(TracedCall::open, AT_FDCWD, path, flags,
                     [&] { return real().open64(path, flags, mode); });
}

FOREBAY_EXPORTED int openat(int directory, const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = mode_in(flags, rest);
  va_end(rest);
  return traced_open(TracedCall::openat, directory, path, flags,
                     [&] { return real().openat(directory, path, flags, mode); });
}

FOREBAY_EXPORTED int openat64(int directory, const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = mode_in(flags, rest);
  va_end(rest);
  return traced_open(TracedCall::openat, directory, path, flags,
                     [&] { return real().openat64(directory, path, flags, mode); });
}

FOREBAY_EXPORTED int creat(const char* path, mode_t mode) {
  return traced_open(TracedCall::creat, AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC,
                     [&] { return real().creat64(path, mode); });
}

FOREBAY_EXPORTED int creat64(const char* path, mode_t mode) FOREBAY_SAME_AS(creat);

// What _FORTIFY_SOURCE makes of the plain calls.
// NOLINTBEGIN(bugprone-reserved-identifier): the names are the C library's.
FOREBAY_EXPORTED int __open_2(const char* path, int flags) {
  return traced_open(TracedCall::open, AT_FDCWD, path, flags,
                     [&] { return real().__open_2(path, flags); });
}

FOREBAY_EXPORTED int __open64_2(const char* path, int flags) {
  return traced_open(TracedCall::open, AT_FDCWD, path, flags,
                     [&] { return real().__open64_2(path, flags); });
}

FOREBAY_EXPORTED int __openat_2(int directory, const char* path, int flags) {
  return traced_open(TracedCall::openat, directory, path, flags,
                     [&] { return real().__openat_2(directory, path, flags); });
}

FOREBAY_EXPORTED int __openat64_2(int directory, const char* path, int flags) {
  return traced_open(TracedCall::openat, directory, path, flags,
                     [&] { return real().__openat64_2(directory, path, flags); });
}
// NOLINTEND(bugprone-reserved-identifier)

FOREBAY_EXPORTED int mkstemp(char* name) {
  return traced_making(TracedCall::mkstemp, name, 0, [&] { return real().mkstemp64(name); });
}

FOREBAY_EXPORTED int mkstemp64(char* name) FOREBAY_SAME_AS(mkstemp);

FOREBAY_EXPORTED int mkostemp(char* name, int flags) {
  return traced_making(TracedCall::mkostemp, name, flags,
                       [&] { return real().mkostemp64(name, flags); });
}

FOREBAY_EXPORTED int mkostemp64(char* name, int flags) FOREBAY_SAME_AS(mkostemp);

FOREBAY_EXPORTED int mkstemps(char* name, int suffix) {
  return traced_making(TracedCall::mkstemps, name, 0,
                       [&] { return real().mkstemps64(name, suffix); });
}

FOREBAY_EXPORTED int mkstemps64(char* name, int suffix) FOREBAY_SAME_AS(mkstemps);

FOREBAY_EXPORTED int mkostemps(char* name, int suffix, int flags) {
  return traced_making(TracedCall::mkostemps, name, flags,
                       [&] { return real().mkostemps64(name, suffix, flags); });
}

FOREBAY_EXPORTED int mkostemps64(char* name, int suffix, int flags) FOREBAY_SAME_AS(mkostemps);

// Another thread may get the number of a descriptor before the call that ended it returns: what is
// known of it is forgotten first.

FOREBAY_EXPORTED int close(int fd) {
  const bool is_file = is_known_traced(fd);
  is_over(fd);
  const auto body = [&] { return real().close(fd); };
  return is_file ? traced(TracedCall::close, whole(fd), body) : body();
}

FOREBAY_EXPORTED int close_range(unsigned first, unsigned last, int flags) {
  if (real().close_range == nullptr) {  // Before glibc 2.34.
    errno = ENOSYS;
    return -1;
  }
  for (unsigned fd = first; flags == 0 && fd < most_descriptors && fd <= last; ++fd) {
    is_over(static_cast<int>(fd));
  }
  return real().close_range(first, last, flags);
}

FOREBAY_EXPORTED void closefrom(int first) {
  for (unsigned fd = static_cast<unsigned>(std::max(first, 0)); fd < most_descriptors; ++fd) {
    is_over(static_cast<int>(fd));
  }
  real().closefrom(first);
}

FOREBAY_EXPORTED int closedir(DIR* directory) {
  const int fd = directory == nullptr ? -1 : ::dirfd(directory);
  const bool is_file = is_known_traced(fd);
  is_over(fd);
  const auto body = [&] { return real().closedir(directory); };
  return is_file ? traced(TracedCall::close, whole(fd), body) : body();
}

FOREBAY_EXPORTED int dup(int fd) {
  return traced_copy(fd, [&] { return real().dup(fd); });
}

FOREBAY_EXPORTED int dup2(int fd, int copy) {
  return traced_copy(fd, [&] { return real().dup2(fd, copy); });
}

FOREBAY_EXPORTED int dup3(int fd, int copy, int flags) {
  return traced_copy(fd, [&] { return real().dup3(fd, copy, flags); });
}

// All commands take one argument of the size of a pointer or less, or none (fcntl(2)).
FOREBAY_EXPORTED int fcntl(int fd, int command, ...) {
  va_list rest;
  va_start(rest, command);
  void* argument = va_arg(rest, void*);
  va_end(rest);
  return traced_fcntl(fd, command, argument, [&] { return real().fcntl(fd, command, argument); });
}

FOREBAY_EXPORTED int fcntl64(int fd, int command, ...) {
  va_list rest;
  va_start(rest, command);
  void* argument = va_arg(rest, void*);
  va_end(rest);
  return traced_fcntl(fd, command, argument, [&] { return real().fcntl64(fd, command, argument); });
}

FOREBAY_EXPORTED int fsync(int fd) {
  return traced_by(TracedCall::fsync, whole(fd), [&] { return real().fsync(fd); });
}

FOREBAY_EXPORTED int fdatasync(int fd) {
  return traced_by(TracedCall::fdatasync, whole(fd), [&] { return real().fdatasync(fd); });
}

/// Told of the file that it was asked by.
FOREBAY_EXPORTED int syncfs(int fd) noexcept {
  return traced_by(TracedCall::syncfs, whole(fd), [&] { return real().syncfs(fd); });
}

FOREBAY_EXPORTED void sync() noexcept {
  traced_of_any(TracedCall::sync, {}, [] {
    real().sync();
    return 0;
  });
}

FOREBAY_EXPORTED int flock(int fd, int operation) noexcept {
  return traced_by(TracedCall::flock, {fd, -1, 0, static_cast<std::uint8_t>(operation)},
                   [&] { return real().flock(fd, operation); });
}

FOREBAY_EXPORTED int lockf(int fd, int operation, off_t length) {
  return traced_by(TracedCall::lockf,
                   {fd, -1, std::abs(length), static_cast<std::uint8_t>(operation)},
                   [&] { return real().lockf64(fd, operation, length); });
}

FOREBAY_EXPORTED int lockf64(int fd, int operation, off64_t length) FOREBAY_SAME_AS(lockf);

FOREBAY_EXPORTED int sync_file_range(int fd, off64_t offset, off64_t length, unsigned flags) {
  return traced_by(TracedCall::sync_file_range, {fd, offset, length, 0},
                   [&] { return real().sync_file_range(fd, offset, length, flags); });
}

FOREBAY_EXPORTED int ftruncate(int fd, off_t length) noexcept {
  return traced_by(TracedCall::ftruncate, {fd, -1, length, 0},
                   [&] { return real().ftruncate64(fd, length); });
}

FOREBAY_EXPORTED int ftruncate64(int fd, off64_t length) noexcept FOREBAY_SAME_AS(ftruncate);

FOREBAY_EXPORTED int fallocate(int fd, int mode, off_t offset, off_t length) {
  return traced_by(TracedCall::fallocate, {fd, offset, length, static_cast<std::uint8_t>(mode)},
                   [&] { return real().fallocate64(fd, mode, offset, length); });
}

FOREBAY_EXPORTED int fallocate64(int fd, int mode, off64_t offset, off64_t length)
    FOREBAY_SAME_AS(fallocate);

FOREBAY_EXPORTED int posix_fallocate(int fd, off_t offset, off_t length) {
  return traced_by(TracedCall::posix_fallocate, {fd, offset, length, 0},
                   [&] { return real().posix_fallocate64(fd, offset, length); });
}

FOREBAY_EXPORTED int posix_fallocate64(int fd, off64_t offset, off64_t length)
    FOREBAY_SAME_AS(posix_fallocate);

FOREBAY_EXPORTED int posix_fadvise(int fd, off_t offset, off_t length, int advice) noexcept {
  return traced_by(TracedCall::posix_fadvise,
                   {fd, offset, length, static_cast<std::uint8_t>(advice)},
                   [&] { return real().posix_fadvise64(fd, offset, length, advice); });
}

FOREBAY_EXPORTED int posix_fadvise64(int fd, off64_t offset, off64_t length, int advice) noexcept
    FOREBAY_SAME_AS(posix_fadvise);

FOREBAY_EXPORTED int fstat(int fd, struct stat* status) noexcept {
  return traced_by(TracedCall::fstat, whole(fd),
                   [&] { return real().fstat64(fd, reinterpret_cast<struct stat64*>(status)); });
}

FOREBAY_EXPORTED int fstat64(int fd, struct stat64* status) noexcept {
  return traced_by(TracedCall::fstat, whole(fd), [&] { return real().fstat64(fd, status); });
}

// NOLINTBEGIN(bugprone-reserved-identifier): as __xstat in name_calls.cpp.
FOREBAY_EXPORTED int __fxstat(int version, int fd, struct stat* status) noexcept {
  return traced_by(TracedCall::fstat, whole(fd), [&] {
    return real().__fxstat64(version, fd, reinterpret_cast<struct stat64*>(status));
  });
}

FOREBAY_EXPORTED int __fxstat64(int version, int fd, struct stat64* status) noexcept {
  return traced_by(TracedCall::fstat, whole(fd),
                   [&] { return real().__fxstat64(version, fd, status); });
}
// NOLINTEND(bugprone-reserved-identifier)

FOREBAY_EXPORTED int fchdir(int fd) noexcept {
  return traced_by(TracedCall::fchdir, whole(fd), [&] { return real().fchdir(fd); });
}

}  // extern "C"
