/* Goal: a program dies at a chosen call: forebay-cache, for toolkit/tests/test_cache_killed.py, and
 * MPI programs that it is a part of (tests/mpi/intercept_cache_killed.c). Method: stands in front
 * of the C library's calls by which files and names change, counts them, and before the chosen one
 * ends the process. A write is half done then. The call is chosen by FOREBAY_TEST_KILLED_AT, from
 * 0, where it is preloaded, and by die_at_call(). Other programs go on as if it were not there. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define IN_FRONT __attribute__((visibility("default")))

/* Calls that are still to be made; negative: nothing happens. */
static atomic_int calls_left = -1;

__attribute__((constructor)) static void start(void) {
  const char* at = getenv("FOREBAY_TEST_KILLED_AT");
  if (at != NULL && strcmp(program_invocation_short_name, "forebay-cache") == 0) {
    atomic_store(&calls_left, atoi(at) + 1);
  }
}

/* The call `number`, from 0, of those that follow is the last one. */
void die_at_call(int number);
IN_FRONT void die_at_call(int number) { atomic_store(&calls_left, number + 1); }

/* Whether this call is the one. */
static int is_last(void) {
  for (int left = atomic_load(&calls_left); left > 0;) {
    if (atomic_compare_exchange_weak(&calls_left, &left, left - 1)) return left == 1;
  }
  return 0;
}

static void die(void) {
  syscall(SYS_kill, getpid(), SIGKILL);
  for (;;) pause();
}

static void may_be_last(void) {
  if (is_last()) die();
}

IN_FRONT int open(const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = (flags & O_CREAT) != 0 ? va_arg(rest, mode_t) : 0;
  va_end(rest);
  if ((flags & O_CREAT) != 0) may_be_last();
  return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

IN_FRONT int openat(int directory, const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = (flags & O_CREAT) != 0 ? va_arg(rest, mode_t) : 0;
  va_end(rest);
  if ((flags & O_CREAT) != 0) may_be_last();
  return (int)syscall(SYS_openat, directory, path, flags, mode);
}

IN_FRONT int mkdir(const char* path, mode_t mode) {
  may_be_last();
  return (int)syscall(SYS_mkdir, path, mode);
}

IN_FRONT int mkdirat(int directory, const char* path, mode_t mode) {
  may_be_last();
  return (int)syscall(SYS_mkdirat, directory, path, mode);
}

IN_FRONT int posix_fallocate(int descriptor, off_t offset, off_t length) {
  may_be_last();
  return syscall(SYS_fallocate, descriptor, 0, offset, length) == 0 ? 0 : errno;
}

IN_FRONT int ftruncate(int descriptor, off_t size) {
  may_be_last();
  return (int)syscall(SYS_ftruncate, descriptor, size);
}

static int is_file(int descriptor) {
  struct stat status;
  return fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode);
}

/* What is said to the command, or to other ranks, changes no file. */
IN_FRONT ssize_t write(int descriptor, const void* bytes, size_t length) {
  const int last = is_file(descriptor) && is_last();
  const ssize_t moved = syscall(SYS_write, descriptor, bytes, last ? length / 2 : length);
  if (last) die();
  return moved;
}

IN_FRONT ssize_t pwrite(int descriptor, const void* bytes, size_t length, off_t offset) {
  const int last = is_last();
  const ssize_t moved =
      syscall(SYS_pwrite64, descriptor, bytes, last ? length / 2 : length, offset);
  if (last) die();
  return moved;
}

IN_FRONT ssize_t pwritev(int descriptor, const struct iovec* pieces, int count, off_t offset) {
  const int last = is_last();
  const ssize_t moved =
      syscall(SYS_pwritev, descriptor, pieces, last ? (count + 1) / 2 : count, offset, 0L);
  if (last) die();
  return moved;
}

IN_FRONT int fsync(int descriptor) {
  may_be_last();
  return (int)syscall(SYS_fsync, descriptor);
}

IN_FRONT int fdatasync(int descriptor) {
  may_be_last();
  return (int)syscall(SYS_fdatasync, descriptor);
}

IN_FRONT int rename(const char* from, const char* to) {
  may_be_last();
  return (int)syscall(SYS_rename, from, to);
}

IN_FRONT int renameat(int from_directory, const char* from, int to_directory, const char* to) {
  may_be_last();
  return (int)syscall(SYS_renameat, from_directory, from, to_directory, to);
}

IN_FRONT int renameat2(int from_directory, const char* from, int to_directory, const char* to,
                       unsigned flags) {
  may_be_last();
  return (int)syscall(SYS_renameat2, from_directory, from, to_directory, to, flags);
}

IN_FRONT int unlink(const char* path) {
  may_be_last();
  return (int)syscall(SYS_unlink, path);
}

IN_FRONT int unlinkat(int directory, const char* path, int flags) {
  may_be_last();
  return (int)syscall(SYS_unlinkat, directory, path, flags);
}

IN_FRONT int rmdir(const char* path) {
  may_be_last();
  return (int)syscall(SYS_rmdir, path);
}
