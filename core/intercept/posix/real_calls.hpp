#pragma once

#include <stdio.h>
#include <sys/types.h>
#include <sys/uio.h>

struct open_how;

namespace forebay::posix {

/// The C library's own functions, behind ours in the order of loading.
struct RealCalls {
  int (*open)(const char*, int, ...);
  int (*open64)(const char*, int, ...);
  int (*openat)(int, const char*, int, ...);
  int (*openat64)(int, const char*, int, ...);
  int (*creat)(const char*, mode_t);
  int (*creat64)(const char*, mode_t);
  int (*open_2)(const char*, int);
  int (*open64_2)(const char*, int);
  int (*openat_2)(int, const char*, int);
  int (*openat64_2)(int, const char*, int);
  int (*openat2)(int, const char*, const open_how*, size_t);  ///< Null before glibc 2.43.
  ssize_t (*read)(int, void*, size_t);
  ssize_t (*pread)(int, void*, size_t, off_t);
  ssize_t (*readv)(int, const iovec*, int);
  ssize_t (*preadv)(int, const iovec*, int, off_t);
  ssize_t (*preadv2)(int, const iovec*, int, off_t, int);
  ssize_t (*read_chk)(int, void*, size_t, size_t);
  ssize_t (*pread_chk)(int, void*, size_t, off_t, size_t);
  int (*close)(int);
  int (*close_range)(unsigned, unsigned, int);
  void (*closefrom)(int);
  FILE* (*fopen)(const char*, const char*);
  FILE* (*fopen64)(const char*, const char*);
  FILE* (*fdopen)(int, const char*);
  FILE* (*freopen)(const char*, const char*, FILE*);
  FILE* (*freopen64)(const char*, const char*, FILE*);
  size_t (*fread)(void*, size_t, size_t, FILE*);
  size_t (*fread_unlocked)(void*, size_t, size_t, FILE*);
  size_t (*fread_chk)(void*, size_t, size_t, size_t, FILE*);
  size_t (*fread_unlocked_chk)(void*, size_t, size_t, size_t, FILE*);
  int (*fclose)(FILE*);
  int (*fseek)(FILE*, long, int);
  int (*fseeko)(FILE*, off_t, int);
  int (*fsetpos)(FILE*, const fpos_t*);
  int (*fsetpos64)(FILE*, const fpos64_t*);
  void (*rewind)(FILE*);
  off_t (*lseek)(int, off_t, int);
  void* (*mmap)(void*, size_t, int, int, int, off_t);
  int (*munmap)(void*, size_t);
  void* (*mremap)(void*, size_t, size_t, int, ...);
  int (*mprotect)(void*, size_t, int);
  int (*dup)(int);
  int (*dup2)(int, int);
  int (*dup3)(int, int, int);
  int (*fcntl)(int, int, ...);
  int (*fcntl64)(int, int, ...);
  int (*lockf)(int, int, off_t);
  void (*_exit)(int);
  void (*_Exit)(int);  // NOLINT(bugprone-reserved-identifier): the C library's name.
  int (*prctl)(int, ...);
  int (*unshare)(int);
  int (*setns)(int, int);
  int (*execve)(const char*, char* const*, char* const*);
  int (*execv)(const char*, char* const*);
  int (*execvp)(const char*, char* const*);
  int (*execvpe)(const char*, char* const*, char* const*);
  int (*fexecve)(int, char* const*, char* const*);
  int (*execveat)(int, const char*, char* const*, char* const*, int);  ///< Null before glibc 2.34.
};

namespace detail {
extern RealCalls found_calls;
extern bool calls_are_found;
void find_calls();
}  // namespace detail

/// Found when the library is loaded, or at the first call if another library calls before that.
inline const RealCalls& real() {
  if (!detail::calls_are_found) [[unlikely]]
    detail::find_calls();
  return detail::found_calls;
}

}  // namespace forebay::posix
