// The calls that read, as programs make them: a listed descriptor is served from memory as far as
// it can be, everything else is the C library's.

#include <algorithm>
#include <cerrno>
#include <cstddef>

#include "core/intercept/posix/cancellation.hpp"
#include "core/intercept/posix/exported.hpp"
#include "core/intercept/posix/managed_files.hpp"
#include "core/intercept/posix/real_calls.hpp"

namespace forebay::posix {
namespace {

/// Linux moves at most this many bytes a call (read(2)).
constexpr size_t most_transferred = 0x7ffff000;

/// What the kernel delivered from `offset` on; if it is negative, from the position.
ssize_t told(int fd, off_t offset, ssize_t moved) noexcept {
  was_read(fd, offset, moved);
  return moved;
}

ssize_t managed_pread(int fd, void* buffer, size_t count, off_t offset) noexcept {
  if (count == 0 || count > most_transferred || offset < 0) {
    return told(fd, offset, real().pread(fd, buffer, count, offset));
  }
  const int before = errno;
  const size_t served = serve_at(fd, buffer, count, offset);
  errno = before;
  if (served == count) return static_cast<ssize_t>(count);
  const off_t behind = offset + static_cast<off_t>(served);
  const ssize_t rest = told(
      fd, behind, real().pread(fd, static_cast<char*>(buffer) + served, count - served, behind));
  if (rest < 0 && served > 0) {
    errno = before;
    return static_cast<ssize_t>(served);  // A short read; the next one meets the error.
  }
  return rest < 0 ? rest : static_cast<ssize_t>(served) + rest;
}

ssize_t managed_read(int fd, void* buffer, size_t count) noexcept {
  if (count == 0 || count > most_transferred) return told(fd, -1, real().read(fd, buffer, count));
  const int before = errno;
  const PositionedServe serve = serve_next(fd, buffer, count);
  errno = before;
  if (serve.claimed == 0) return told(fd, -1, real().read(fd, buffer, count));
  if (serve.bytes == serve.claimed) return static_cast<ssize_t>(serve.bytes);
  const ssize_t rest =
      real().pread(fd, static_cast<char*>(buffer) + serve.bytes, serve.claimed - serve.bytes,
                   serve.offset + static_cast<off_t>(serve.bytes));
  const int failed = errno;
  const size_t moved = serve.bytes + static_cast<size_t>(std::max<ssize_t>(rest, 0));
  if (moved < serve.claimed) {
    // By as much as was claimed in vain: whoever moved the position since is not undone.
    ::lseek(fd, -static_cast<off_t>(serve.claimed - moved), SEEK_CUR);
  }
  errno = rest < 0 && moved == 0 ? failed : before;
  return rest < 0 && moved == 0 ? -1 : static_cast<ssize_t>(moved);
}

/// Piece by piece, until one is not filled.
template <typename Read>
ssize_t each_piece(const iovec* pieces, int count, Read read) noexcept {
  ssize_t sum = 0;
  for (int i = 0; i < count; ++i) {
    if (pieces[i].iov_len == 0) continue;
    const ssize_t moved = read(pieces[i].iov_base, pieces[i].iov_len, sum);
    if (moved < 0) return sum > 0 ? sum : moved;
    sum += moved;
    if (static_cast<size_t>(moved) < pieces[i].iov_len) break;
  }
  return sum;
}

/// Pieces that the kernel would take in one call; anything else is left to it, with its errors.
bool is_plain(const iovec* pieces, int count) noexcept {
  constexpr int most_pieces = 1024;  // IOV_MAX of Linux.
  if (pieces == nullptr || count < 1 || count > most_pieces) return false;
  size_t sum = 0;
  for (int i = 0; i < count; ++i) {
    if (pieces[i].iov_len > most_transferred - sum) return false;
    sum += pieces[i].iov_len;
  }
  return sum > 0;
}

ssize_t managed_preadv(int fd, const iovec* pieces, int count, off_t offset) noexcept {
  if (!is_plain(pieces, count) || offset < 0) {
    return told(fd, offset, real().preadv(fd, pieces, count, offset));
  }
  return each_piece(pieces, count, [&](void* buffer, size_t length, ssize_t before) {
    return managed_pread(fd, buffer, length, offset + before);
  });
}

ssize_t managed_readv(int fd, const iovec* pieces, int count) noexcept {
  // Of several pieces each would claim its part by itself, and another thread could come between.
  if (!is_plain(pieces, count) || count > 1) {
    return told(fd, -1, real().readv(fd, pieces, count));
  }
  return managed_read(fd, pieces[0].iov_base, pieces[0].iov_len);
}

}  // namespace
}  // namespace forebay::posix

using forebay::posix::CancellationPoint;
using forebay::posix::listed;
using forebay::posix::real;

extern "C" {

FOREBAY_EXPORTED ssize_t read(int fd, void* buffer, size_t count) {
  if (listed(fd) == nullptr) return real().read(fd, buffer, count);
  const CancellationPoint point;
  return forebay::posix::managed_read(fd, buffer, count);
}

FOREBAY_EXPORTED ssize_t pread(int fd, void* buffer, size_t count, off_t offset) {
  if (listed(fd) == nullptr) return real().pread(fd, buffer, count, offset);
  const CancellationPoint point;
  return forebay::posix::managed_pread(fd, buffer, count, offset);
}

FOREBAY_EXPORTED ssize_t pread64(int fd, void* buffer, size_t count, off64_t offset) {
  return pread(fd, buffer, count, offset);
}

/// Only for a recording of what C++ streams read, which seek so themselves.
FOREBAY_EXPORTED off_t lseek(int fd, off_t offset, int whence) noexcept {
  if (!forebay::posix::recording || listed(fd) == nullptr) return real().lseek(fd, offset, whence);
  forebay::posix::stream_read(fd);
  const off_t position = real().lseek(fd, offset, whence);
  forebay::posix::stream_sought(fd, position);
  return position;
}

FOREBAY_EXPORTED off64_t lseek64(int fd, off64_t offset, int whence) noexcept {
  return lseek(fd, offset, whence);
}

FOREBAY_EXPORTED ssize_t readv(int fd, const iovec* pieces, int count) {
  if (listed(fd) == nullptr) return real().readv(fd, pieces, count);
  const CancellationPoint point;
  return forebay::posix::managed_readv(fd, pieces, count);
}

FOREBAY_EXPORTED ssize_t preadv(int fd, const iovec* pieces, int count, off_t offset) {
  if (listed(fd) == nullptr) return real().preadv(fd, pieces, count, offset);
  const CancellationPoint point;
  return forebay::posix::managed_preadv(fd, pieces, count, offset);
}

FOREBAY_EXPORTED ssize_t preadv64(int fd, const iovec* pieces, int count, off64_t offset) {
  return preadv(fd, pieces, count, offset);
}

FOREBAY_EXPORTED ssize_t preadv2(int fd, const iovec* pieces, int count, off_t offset, int flags) {
  if (listed(fd) == nullptr || flags != 0) {
    return forebay::posix::told(fd, offset, real().preadv2(fd, pieces, count, offset, flags));
  }
  const CancellationPoint point;
  if (offset == -1) return forebay::posix::managed_readv(fd, pieces, count);
  return forebay::posix::managed_preadv(fd, pieces, count, offset);
}

FOREBAY_EXPORTED ssize_t preadv64v2(int fd, const iovec* pieces, int count, off64_t offset,
                                    int flags) {
  return preadv2(fd, pieces, count, offset, flags);
}

// What _FORTIFY_SOURCE makes of the plain calls. The C library's own end the program where the
// buffer is too small.
// NOLINTBEGIN(bugprone-reserved-identifier): the names are the C library's.
FOREBAY_EXPORTED ssize_t __read_chk(int fd, void* buffer, size_t count, size_t room) {
  if (listed(fd) == nullptr || count > room) return real().read_chk(fd, buffer, count, room);
  const CancellationPoint point;
  return forebay::posix::managed_read(fd, buffer, count);
}

FOREBAY_EXPORTED ssize_t __pread_chk(int fd, void* buffer, size_t count, off_t offset,
                                     size_t room) {
  if (listed(fd) == nullptr || count > room) {
    return real().pread_chk(fd, buffer, count, offset, room);
  }
  const CancellationPoint point;
  return forebay::posix::managed_pread(fd, buffer, count, offset);
}

FOREBAY_EXPORTED ssize_t __pread64_chk(int fd, void* buffer, size_t count, off64_t offset,
                                       size_t room) {
  return __pread_chk(fd, buffer, count, offset, room);
}
// NOLINTEND(bugprone-reserved-identifier)

}  // extern "C"
