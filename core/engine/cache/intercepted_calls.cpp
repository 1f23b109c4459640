#include "core/engine/cache/intercepted_calls.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdarg>
#include <cstddef>
#include <cstdlib>
#include <span>
#include <string_view>

#include "core/engine/cache/piece_slice.hpp"
#include "core/storage/piece_walk.hpp"

namespace forebay {

const char* to_string(CallKind kind) {
  switch (kind) {
    case CallKind::open:
      return "open";
    case CallKind::make_directory:
      return "mkdir";
    case CallKind::allocate:
      return "fallocate";
    case CallKind::map:
      return "mmap";
    case CallKind::write:
      return "write";
    case CallKind::read:
      return "read";
    case CallKind::resize:
      return "ftruncate";
    case CallKind::sync:
      return "fsync";
    case CallKind::rename:
      return "rename";
    case CallKind::remove:
      return "unlink";
  }
  return "";
}

std::atomic<Injected*> injected{nullptr};

void kill_this_process() {
  (void)::kill(::getpid(), SIGKILL);
  std::abort();  // It does not come here.
}

namespace {

/// Whether this call, on something that lies at `path`, is one that fails, errno being set then, or
/// that kills the process within. One that is not to be made kills it here.
bool meets_at(CallKind kind, const char* path) {
  Injected* const plan = injected;
  if (plan == nullptr || kind != plan->kind) return false;
  if (std::string_view(path).substr(0, plan->place.size()) != plan->place) return false;
  const int number = plan->calls++;
  if (number != plan->nth && !(plan->lasting && number > plan->nth)) return false;
  if (plan->fate == Fate::kills) kill_this_process();
  errno = plan->os_errno;
  return true;
}

bool meets_on(CallKind kind, int descriptor) {
  if (injected == nullptr) return false;
  const std::string link = "/proc/self/fd/" + std::to_string(descriptor);
  std::array<char, PATH_MAX> path{};
  return ::readlink(link.c_str(), path.data(), path.size() - 1) > 0 && meets_at(kind, path.data());
}

/// Names below a directory that is open count as that.
bool meets_below(CallKind kind, int directory, const char* path) {
  return directory == AT_FDCWD || path[0] == '/' ? meets_at(kind, path) : meets_on(kind, directory);
}

/// `call(n)` writes the first n bytes of `length`.
template <typename Call>
ssize_t write_on(int descriptor, std::size_t length, Call call) {
  if (!meets_on(CallKind::write, descriptor)) return call(length);
  if (injected.load()->fate == Fate::kills_within) {
    (void)call(length / 2);
    kill_this_process();
  }
  return -1;
}

}  // namespace
}  // namespace forebay

// NOLINTBEGIN(readability-inconsistent-declaration-parameter-name)
#define FOREBAY_IN_FRONT extern "C" __attribute__((visibility("default")))

FOREBAY_IN_FRONT int openat(int directory, const char* path, int flags, ...) {
  std::va_list rest;
  va_start(rest, flags);
  const mode_t mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(rest, mode_t) : 0;
  va_end(rest);
  if (forebay::meets_below(forebay::CallKind::open, directory, path)) return -1;
  return static_cast<int>(::syscall(SYS_openat, directory, path, flags, mode));
}

FOREBAY_IN_FRONT int open(const char* path, int flags, ...) {
  std::va_list rest;
  va_start(rest, flags);
  const mode_t mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(rest, mode_t) : 0;
  va_end(rest);
  return openat(AT_FDCWD, path, flags, mode);
}

FOREBAY_IN_FRONT int mkdirat(int directory, const char* path, mode_t mode) noexcept {
  if (forebay::meets_below(forebay::CallKind::make_directory, directory, path)) return -1;
  return static_cast<int>(::syscall(SYS_mkdirat, directory, path, mode));
}

FOREBAY_IN_FRONT int mkdir(const char* path, mode_t mode) noexcept {
  return mkdirat(AT_FDCWD, path, mode);
}

FOREBAY_IN_FRONT int fallocate(int descriptor, int mode, off_t offset, off_t length) {
  if (forebay::meets_on(forebay::CallKind::allocate, descriptor)) return -1;
  return static_cast<int>(::syscall(SYS_fallocate, descriptor, mode, offset, length));
}

FOREBAY_IN_FRONT int posix_fallocate(int descriptor, off_t offset, off_t length) {
  return fallocate(descriptor, 0, offset, length) == 0 ? 0 : errno;
}

FOREBAY_IN_FRONT void* mmap(void* address, size_t length, int protection, int flags, int descriptor,
                            off_t offset) noexcept {
  if (descriptor >= 0 && forebay::meets_on(forebay::CallKind::map, descriptor)) return MAP_FAILED;
  return reinterpret_cast<void*>(
      ::syscall(SYS_mmap, address, length, protection, flags, descriptor, offset));
}

FOREBAY_IN_FRONT ssize_t write(int descriptor, const void* bytes, size_t length) {
  return forebay::write_on(descriptor, length, [=](std::size_t part) {
    return ::syscall(SYS_write, descriptor, bytes, part);
  });
}

FOREBAY_IN_FRONT ssize_t pwrite(int descriptor, const void* bytes, size_t length, off_t offset) {
  return forebay::write_on(descriptor, length, [=](std::size_t part) {
    return ::syscall(SYS_pwrite64, descriptor, bytes, part, offset);
  });
}

FOREBAY_IN_FRONT ssize_t pwritev(int descriptor, const iovec* pieces, int count, off_t offset) {
  const std::span all(pieces, static_cast<std::size_t>(count));
  const auto length = static_cast<std::size_t>(forebay::total_bytes(all));
  return forebay::write_on(descriptor, length, [=](std::size_t part) {
    const auto first = forebay::slice(all, 0, static_cast<forebay::Bytes>(part));
    return ::syscall(SYS_pwritev, descriptor, first.data(), first.size(), offset, 0L);
  });
}

FOREBAY_IN_FRONT ssize_t read(int descriptor, void* bytes, size_t length) {
  if (forebay::meets_on(forebay::CallKind::read, descriptor)) return -1;
  return ::syscall(SYS_read, descriptor, bytes, length);
}

FOREBAY_IN_FRONT ssize_t pread(int descriptor, void* bytes, size_t length, off_t offset) {
  if (forebay::meets_on(forebay::CallKind::read, descriptor)) return -1;
  return ::syscall(SYS_pread64, descriptor, bytes, length, offset);
}

FOREBAY_IN_FRONT ssize_t preadv(int descriptor, const iovec* pieces, int count, off_t offset) {
  if (forebay::meets_on(forebay::CallKind::read, descriptor)) return -1;
  return ::syscall(SYS_preadv, descriptor, pieces, count, offset, 0L);
}

FOREBAY_IN_FRONT int ftruncate(int descriptor, off_t size) noexcept {
  if (forebay::meets_on(forebay::CallKind::resize, descriptor)) return -1;
  return static_cast<int>(::syscall(SYS_ftruncate, descriptor, size));
}

FOREBAY_IN_FRONT int fsync(int descriptor) {
  return forebay::meets_on(forebay::CallKind::sync, descriptor) ? -1 : 0;
}

FOREBAY_IN_FRONT int fdatasync(int descriptor) { return fsync(descriptor); }

FOREBAY_IN_FRONT int renameat2(int from_directory, const char* from, int to_directory,
                               const char* to, unsigned flags) noexcept {
  if (forebay::meets_below(forebay::CallKind::rename, from_directory, from)) return -1;
  return static_cast<int>(::syscall(SYS_renameat2, from_directory, from, to_directory, to, flags));
}

FOREBAY_IN_FRONT int renameat(int from_directory, const char* from, int to_directory,
                              const char* to) noexcept {
  return renameat2(from_directory, from, to_directory, to, 0);
}

FOREBAY_IN_FRONT int rename(const char* from, const char* to) noexcept {
  return renameat2(AT_FDCWD, from, AT_FDCWD, to, 0);
}

FOREBAY_IN_FRONT int unlinkat(int directory, const char* path, int flags) noexcept {
  if (forebay::meets_below(forebay::CallKind::remove, directory, path)) return -1;
  return static_cast<int>(::syscall(SYS_unlinkat, directory, path, flags));
}

FOREBAY_IN_FRONT int unlink(const char* path) noexcept { return unlinkat(AT_FDCWD, path, 0); }

FOREBAY_IN_FRONT int rmdir(const char* path) noexcept {
  return unlinkat(AT_FDCWD, path, AT_REMOVEDIR);
}

// NOLINTEND(readability-inconsistent-declaration-parameter-name)
