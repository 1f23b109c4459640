#pragma once

#include <aio.h>
#include <dirent.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <wchar.h>

#include <cstdarg>

namespace forebay::trace {

/// Functions behind ours in the order of loading: symbol, result and parameters. What takes a mode
/// or an argument behind its flags is called with it always.
#define FOREBAY_TRACE_REAL(CALL)                                                   \
  CALL(pread64, ssize_t, (int, void*, size_t, off_t))                              \
  CALL(preadv64, ssize_t, (int, const iovec*, int, off_t))                         \
  CALL(preadv64v2, ssize_t, (int, const iovec*, int, off_t, int))                  \
  CALL(pwrite64, ssize_t, (int, const void*, size_t, off_t))                       \
  CALL(pwritev64, ssize_t, (int, const iovec*, int, off_t))                        \
  CALL(pwritev64v2, ssize_t, (int, const iovec*, int, off_t, int))                 \
  CALL(__pread64_chk, ssize_t, (int, void*, size_t, off_t, size_t))                \
  CALL(read, ssize_t, (int, void*, size_t))                                        \
  CALL(__read_chk, ssize_t, (int, void*, size_t, size_t))                          \
  CALL(readv, ssize_t, (int, const iovec*, int))                                   \
  CALL(write, ssize_t, (int, const void*, size_t))                                 \
  CALL(writev, ssize_t, (int, const iovec*, int))                                  \
  CALL(aio_return, ssize_t, (aiocb*))                                              \
  CALL(aio_return64, ssize_t, (aiocb64*))                                          \
  CALL(copy_file_range, ssize_t, (int, off64_t*, int, off64_t*, size_t, unsigned)) \
  CALL(sendfile64, ssize_t, (int, int, off_t*, size_t))                            \
  CALL(splice, ssize_t, (int, off64_t*, int, off64_t*, size_t, unsigned))          \
  CALL(lseek64, off_t, (int, off_t, int))                                          \
  CALL(fallocate64, int, (int, int, off_t, off_t))                                 \
  CALL(posix_fallocate64, int, (int, off_t, off_t))                                \
  CALL(posix_fadvise64, int, (int, off_t, off_t, int))                             \
  CALL(sync_file_range, int, (int, off64_t, off64_t, unsigned))                    \
  CALL(fsync, int, (int))                                                          \
  CALL(fdatasync, int, (int))                                                      \
  CALL(syncfs, int, (int))                                                         \
  CALL(sync, void, ())                                                             \
  CALL(flock, int, (int, int))                                                     \
  CALL(lockf64, int, (int, int, off_t))                                            \
  CALL(ftruncate64, int, (int, off_t))                                             \
  CALL(fstat64, int, (int, struct stat64*))                                        \
  CALL(close, int, (int))                                                          \
  CALL(close_range, int, (unsigned, unsigned, int))                                \
  CALL(closefrom, void, (int))                                                     \
  CALL(closedir, int, (DIR*))                                                      \
  CALL(dup, int, (int))                                                            \
  CALL(dup2, int, (int, int))                                                      \
  CALL(dup3, int, (int, int, int))                                                 \
  CALL(fcntl, int, (int, int, ...))                                                \
  CALL(fcntl64, int, (int, int, ...))                                              \
  CALL(fchdir, int, (int))                                                         \
  CALL(open, int, (const char*, int, ...))                                         \
  CALL(open64, int, (const char*, int, ...))                                       \
  CALL(openat, int, (int, const char*, int, ...))                                  \
  CALL(openat64, int, (int, const char*, int, ...))                                \
  CALL(__open_2, int, (const char*, int))                                          \
  CALL(__open64_2, int, (const char*, int))                                        \
  CALL(__openat_2, int, (int, const char*, int))                                   \
  CALL(__openat64_2, int, (int, const char*, int))                                 \
  CALL(creat64, int, (const char*, mode_t))                                        \
  CALL(mkstemp64, int, (char*))                                                    \
  CALL(mkostemp64, int, (char*, int))                                              \
  CALL(mkstemps64, int, (char*, int))                                              \
  CALL(mkostemps64, int, (char*, int, int))                                        \
  CALL(fopen, FILE*, (const char*, const char*))                                   \
  CALL(fopen64, FILE*, (const char*, const char*))                                 \
  CALL(freopen, FILE*, (const char*, const char*, FILE*))                          \
  CALL(freopen64, FILE*, (const char*, const char*, FILE*))                        \
  CALL(tmpfile, FILE*, ())                                                         \
  CALL(tmpfile64, FILE*, ())                                                       \
  CALL(fclose, int, (FILE*))                                                       \
  CALL(fflush, int, (FILE*))                                                       \
  CALL(fread, size_t, (void*, size_t, size_t, FILE*))                              \
  CALL(fread_unlocked, size_t, (void*, size_t, size_t, FILE*))                     \
  CALL(__fread_chk, size_t, (void*, size_t, size_t, size_t, FILE*))                \
  CALL(__fread_unlocked_chk, size_t, (void*, size_t, size_t, size_t, FILE*))       \
  CALL(fwrite, size_t, (const void*, size_t, size_t, FILE*))                       \
  CALL(fwrite_unlocked, size_t, (const void*, size_t, size_t, FILE*))              \
  CALL(fseek, int, (FILE*, long, int))                                             \
  CALL(fseeko64, int, (FILE*, off_t, int))                                         \
  CALL(rewind, void, (FILE*))                                                      \
  CALL(fsetpos, int, (FILE*, const fpos_t*))                                       \
  CALL(fsetpos64, int, (FILE*, const fpos64_t*))                                   \
  CALL(fgets, char*, (char*, int, FILE*))                                          \
  CALL(fgets_unlocked, char*, (char*, int, FILE*))                                 \
  CALL(__fgets_chk, char*, (char*, size_t, int, FILE*))                            \
  CALL(__fgets_unlocked_chk, char*, (char*, size_t, int, FILE*))                   \
  CALL(getline, ssize_t, (char**, size_t*, FILE*))                                 \
  CALL(getdelim, ssize_t, (char**, size_t*, int, FILE*))                           \
  CALL(fputs, int, (const char*, FILE*))                                           \
  CALL(fputs_unlocked, int, (const char*, FILE*))                                  \
  CALL(puts, int, (const char*))                                                   \
  CALL(vfprintf, int, (FILE*, const char*, va_list))                               \
  CALL(__vfprintf_chk, int, (FILE*, int, const char*, va_list))                    \
  CALL(vdprintf, int, (int, const char*, va_list))                                 \
  CALL(__vdprintf_chk, int, (int, int, const char*, va_list))                      \
  CALL(vfscanf, int, (FILE*, const char*, va_list))                                \
  CALL(__isoc99_vfscanf, int, (FILE*, const char*, va_list))                       \
  CALL(__isoc23_vfscanf, int, (FILE*, const char*, va_list))                       \
  CALL(fgetc, int, (FILE*))                                                        \
  CALL(fgetc_unlocked, int, (FILE*))                                               \
  CALL(__uflow, int, (FILE*))                                                      \
  CALL(ungetc, int, (int, FILE*))                                                  \
  CALL(fputc, int, (int, FILE*))                                                   \
  CALL(fputc_unlocked, int, (int, FILE*))                                          \
  CALL(__overflow, int, (FILE*, int))                                              \
  CALL(fwide, int, (FILE*, int))                                                   \
  CALL(fgetwc, wint_t, (FILE*))                                                    \
  CALL(fgetwc_unlocked, wint_t, (FILE*))                                           \
  CALL(ungetwc, wint_t, (wint_t, FILE*))                                           \
  CALL(fgetws, wchar_t*, (wchar_t*, int, FILE*))                                   \
  CALL(fgetws_unlocked, wchar_t*, (wchar_t*, int, FILE*))                          \
  CALL(__fgetws_chk, wchar_t*, (wchar_t*, size_t, int, FILE*))                     \
  CALL(__fgetws_unlocked_chk, wchar_t*, (wchar_t*, size_t, int, FILE*))            \
  CALL(fputwc, wint_t, (wchar_t, FILE*))                                           \
  CALL(fputwc_unlocked, wint_t, (wchar_t, FILE*))                                  \
  CALL(fputws, int, (const wchar_t*, FILE*))                                       \
  CALL(fputws_unlocked, int, (const wchar_t*, FILE*))                              \
  CALL(vfwprintf, int, (FILE*, const wchar_t*, va_list))                           \
  CALL(__vfwprintf_chk, int, (FILE*, int, const wchar_t*, va_list))                \
  CALL(vfwscanf, int, (FILE*, const wchar_t*, va_list))                            \
  CALL(__isoc99_vfwscanf, int, (FILE*, const wchar_t*, va_list))                   \
  CALL(__isoc23_vfwscanf, int, (FILE*, const wchar_t*, va_list))                   \
  CALL(mmap64, void*, (void*, size_t, int, int, int, off_t))                       \
  CALL(msync, int, (void*, size_t, int))                                           \
  CALL(stat64, int, (const char*, struct stat64*))                                 \
  CALL(lstat64, int, (const char*, struct stat64*))                                \
  CALL(fstatat64, int, (int, const char*, struct stat64*, int))                    \
  CALL(statx, int, (int, const char*, int, unsigned, struct statx*))               \
  CALL(__xstat64, int, (int, const char*, struct stat64*))                         \
  CALL(__lxstat64, int, (int, const char*, struct stat64*))                        \
  CALL(__fxstat64, int, (int, int, struct stat64*))                                \
  CALL(__fxstatat64, int, (int, int, const char*, struct stat64*, int))            \
  CALL(access, int, (const char*, int))                                            \
  CALL(faccessat, int, (int, const char*, int, int))                               \
  CALL(truncate64, int, (const char*, off_t))                                      \
  CALL(unlink, int, (const char*))                                                 \
  CALL(unlinkat, int, (int, const char*, int))                                     \
  CALL(remove, int, (const char*))                                                 \
  CALL(mkdir, int, (const char*, mode_t))                                          \
  CALL(mkdirat, int, (int, const char*, mode_t))                                   \
  CALL(rmdir, int, (const char*))                                                  \
  CALL(opendir, DIR*, (const char*))                                               \
  CALL(chdir, int, (const char*))                                                  \
  CALL(rename, int, (const char*, const char*))                                    \
  CALL(renameat, int, (int, const char*, int, const char*))                        \
  CALL(renameat2, int, (int, const char*, int, const char*, unsigned))             \
  CALL(_exit, void, (int))                                                         \
  CALL(_Exit, void, (int))                                                         \
  CALL(execve, int, (const char*, char* const*, char* const*))                     \
  CALL(execv, int, (const char*, char* const*))                                    \
  CALL(execvp, int, (const char*, char* const*))                                   \
  CALL(execvpe, int, (const char*, char* const*, char* const*))                    \
  CALL(fexecve, int, (int, char* const*, char* const*))                            \
  CALL(execveat, int, (int, const char*, char* const*, char* const*, int))

struct RealCalls {
  // NOLINTBEGIN(bugprone-reserved-identifier): the names are the C library's.
#define FOREBAY_REAL_CALL(name, result, parameters) result(*name) parameters;
  FOREBAY_TRACE_REAL(FOREBAY_REAL_CALL)
#undef FOREBAY_REAL_CALL
  // NOLINTEND(bugprone-reserved-identifier)
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

}  // namespace forebay::trace
