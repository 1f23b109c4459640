// The calls that look up, make and remove names.

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>

#include "core/intercept/posix/exported.hpp"
#include "core/intercept/trace/real_calls.hpp"
#include "core/intercept/trace/traced_call.hpp"

namespace forebay::trace {
namespace {

/// One of two names, the old beside `directory`.
template <typename Rename>
[[gnu::always_inline]] inline int traced_rename(TracedCall call, int directory,
                                                const char* old_name, const char* new_name,
                                                Rename&& body) {
  if (!is_on() || old_name == nullptr || new_name == nullptr) return body();
  const auto from = static_cast<std::int64_t>(key_of({old_name, std::strlen(old_name)}));
  const auto to = static_cast<std::int64_t>(key_of({new_name, std::strlen(new_name)}));
  return traced(call, {directory, from, to, 0}, body);
}

/// The same structure, where a file's size has 64 bits always.
struct stat64* wide(struct stat* status) { return reinterpret_cast<struct stat64*>(status); }
static_assert(sizeof(struct stat) == sizeof(struct stat64));

}  // namespace
}  // namespace forebay::trace

using namespace forebay::trace;
using forebay::TracedCall;

extern "C" {

FOREBAY_EXPORTED int stat(const char* path, struct stat* status) noexcept {
  return traced_name(TracedCall::stat, AT_FDCWD, path, 0,
                     [&] { return real().stat64(path, wide(status)); });
}

FOREBAY_EXPORTED int stat64(const char* path, struct stat64* status) noexcept {
  return traced_name(TracedCall::stat, AT_FDCWD, path, 0,
                     [&] { return real().stat64(path, status); });
}

FOREBAY_EXPORTED int lstat(const char* path, struct stat* status) noexcept {
  return traced_name(TracedCall::lstat, AT_FDCWD, path, 0,
                     [&] { return real().lstat64(path, wide(status)); });
}

FOREBAY_EXPORTED int lstat64(const char* path, struct stat64* status) noexcept {
  return traced_name(TracedCall::lstat, AT_FDCWD, path, 0,
                     [&] { return real().lstat64(path, status); });
}

FOREBAY_EXPORTED int fstatat(int directory, const char* path, struct stat* status,
                             int flags) noexcept {
  return traced_name(TracedCall::fstatat, directory, path, flags,
                     [&] { return real().fstatat64(directory, path, wide(status), flags); });
}

FOREBAY_EXPORTED int fstatat64(int directory, const char* path, struct stat64* status,
                               int flags) noexcept {
  return traced_name(TracedCall::fstatat, directory, path, flags,
                     [&] { return real().fstatat64(directory, path, status, flags); });
}

// NOLINTBEGIN(bugprone-reserved-identifier): the names are the C library's. Programs that were
// built with one before 2.33 call these; the version is that of the structure.
FOREBAY_EXPORTED int __xstat(int version, const char* path, struct stat* status) noexcept {
  return traced_name(TracedCall::stat, AT_FDCWD, path, 0,
                     [&] { return real().__xstat64(version, path, wide(status)); });
}

FOREBAY_EXPORTED int __xstat64(int version, const char* path, struct stat64* status) noexcept {
  return traced_name(TracedCall::stat, AT_FDCWD, path, 0,
                     [&] { return real().__xstat64(version, path, status); });
}

FOREBAY_EXPORTED int __lxstat(int version, const char* path, struct stat* status) noexcept {
  return traced_name(TracedCall::lstat, AT_FDCWD, path, 0,
                     [&] { return real().__lxstat64(version, path, wide(status)); });
}

FOREBAY_EXPORTED int __lxstat64(int version, const char* path, struct stat64* status) noexcept {
  return traced_name(TracedCall::lstat, AT_FDCWD, path, 0,
                     [&] { return real().__lxstat64(version, path, status); });
}

FOREBAY_EXPORTED int __fxstatat(int version, int directory, const char* path, struct stat* status,
                                int flags) noexcept {
  return traced_name(TracedCall::fstatat, directory, path, flags, [&] {
    return real().__fxstatat64(version, directory, path, wide(status), flags);
  });
}

FOREBAY_EXPORTED int __fxstatat64(int version, int directory, const char* path,
                                  struct stat64* status, int flags) noexcept {
  return traced_name(TracedCall::fstatat, directory, path, flags,
                     [&] { return real().__fxstatat64(version, directory, path, status, flags); });
}
// NOLINTEND(bugprone-reserved-identifier)

FOREBAY_EXPORTED int statx(int directory, const char* path, int flags, unsigned mask,
                           struct statx* status) noexcept {
  return traced_name(TracedCall::statx, directory, path, flags,
                     [&] { return real().statx(directory, path, flags, mask, status); });
}

FOREBAY_EXPORTED int access(const char* path, int mode) noexcept {
  return traced_name(TracedCall::access, AT_FDCWD, path, mode,
                     [&] { return real().access(path, mode); });
}

FOREBAY_EXPORTED int faccessat(int directory, const char* path, int mode, int flags) noexcept {
  return traced_name(TracedCall::access, directory, path, mode,
                     [&] { return real().faccessat(directory, path, mode, flags); });
}

FOREBAY_EXPORTED int truncate(const char* path, off_t length) noexcept {
  return traced_name(TracedCall::truncate, AT_FDCWD, path, length,
                     [&] { return real().truncate64(path, length); });
}

FOREBAY_EXPORTED int truncate64(const char* path, off64_t length) noexcept
    FOREBAY_SAME_AS(truncate);

FOREBAY_EXPORTED int unlink(const char* path) noexcept {
  return traced_name(TracedCall::unlink, AT_FDCWD, path, 0, [&] { return real().unlink(path); });
}

FOREBAY_EXPORTED int unlinkat(int directory, const char* path, int flags) noexcept {
  return traced_name(TracedCall::unlinkat, directory, path, flags,
                     [&] { return real().unlinkat(directory, path, flags); });
}

FOREBAY_EXPORTED int remove(const char* path) noexcept {
  return traced_name(TracedCall::unlink, AT_FDCWD, path, 0, [&] { return real().remove(path); });
}

FOREBAY_EXPORTED int mkdir(const char* path, mode_t mode) noexcept {
  return traced_name(TracedCall::mkdir, AT_FDCWD, path, mode,
                     [&] { return real().mkdir(path, mode); });
}

FOREBAY_EXPORTED int mkdirat(int directory, const char* path, mode_t mode) noexcept {
  return traced_name(TracedCall::mkdir, directory, path, mode,
                     [&] { return real().mkdirat(directory, path, mode); });
}

FOREBAY_EXPORTED int rmdir(const char* path) noexcept {
  return traced_name(TracedCall::rmdir, AT_FDCWD, path, 0, [&] { return real().rmdir(path); });
}

FOREBAY_EXPORTED DIR* opendir(const char* path) {
  return traced_name(TracedCall::opendir, AT_FDCWD, path, 0, [&] { return real().opendir(path); });
}

FOREBAY_EXPORTED int chdir(const char* path) noexcept {
  return traced_name(TracedCall::chdir, AT_FDCWD, path, 0, [&] { return real().chdir(path); });
}

FOREBAY_EXPORTED int rename(const char* old_name, const char* new_name) noexcept {
  return traced_rename(TracedCall::rename, AT_FDCWD, old_name, new_name,
                       [&] { return real().rename(old_name, new_name); });
}

FOREBAY_EXPORTED int renameat(int old_directory, const char* old_name, int new_directory,
                              const char* new_name) noexcept {
  return traced_rename(TracedCall::renameat, old_directory, old_name, new_name, [&] {
    return real().renameat(old_directory, old_name, new_directory, new_name);
  });
}

FOREBAY_EXPORTED int renameat2(int old_directory, const char* old_name, int new_directory,
                               const char* new_name, unsigned flags) noexcept {
  return traced_rename(TracedCall::renameat, old_directory, old_name, new_name, [&] {
    return real().renameat2(old_directory, old_name, new_directory, new_name, flags);
  });
}

}  // extern "C"
