// The calls that move a file's bytes by a descriptor, and those that move its position.

#include <aio.h>
#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>

#include "core/intercept/posix/exported.hpp"
#include "core/intercept/trace/real_calls.hpp"
#include "core/intercept/trace/traced_call.hpp"

namespace forebay::trace {
namespace {

Told at(int fd, off_t offset, std::size_t length) {
  return {fd, offset, static_cast<std::int64_t>(length), 0};
}
Told at_position(int fd, std::size_t length) { return at(fd, -1, length); }

/// Whether a call that answered `told` has got as far as to the file: then its arguments are right.
bool came_to_file(std::int64_t told) {
  constexpr std::array late = {-EIO, -ENOSPC, -EDQUOT, -EFBIG, -EINTR, -EAGAIN};
  return told >= 0 || std::ranges::find(late, told) != late.end();
}

/// Bytes that the pieces of a call had room for which answered `told`; 0 where the kernel may not
/// have been able to read their array, or has not tried: we cannot, either.
std::int64_t sum_of(const iovec* pieces, int count, std::int64_t told) {
  if (!came_to_file(told)) return 0;
  std::int64_t sum = 0;
  for (int i = 0; i < count; ++i) sum += static_cast<std::int64_t>(pieces[i].iov_len);
  return sum;
}

template <typename Call>
[[gnu::always_inline]] inline ssize_t traced_pieces(TracedCall call, int fd, off_t offset,
                                                    const iovec* pieces, int count, Call&& body) {
  if (!is_traced(fd)) return body();
  prepare();
  const std::uint64_t begin = ticks();
  const ssize_t result = body();
  const std::uint64_t end = ticks();
  const std::int64_t told = told_result(result);
  tell(call, {fd, offset, sum_of(pieces, count, told), 0}, begin, end, told,
       __builtin_return_address(0));
  return result;
}

/// Where a descriptor's side of a copy that answered `told` began: at the position if `offset` is
/// null. Else the kernel has moved that on by what it copied, or may not have been able to read it.
off_t side(const off_t* offset, std::int64_t told) {
  constexpr off_t not_known = -2;
  if (offset == nullptr) return -1;
  return came_to_file(told) ? *offset - std::max<std::int64_t>(told, 0) : not_known;
}

/// From one descriptor to another, which move by themselves. The time is told of the writing side.
template <typename Copy>
[[gnu::always_inline]] inline ssize_t traced_copy(TracedCall call, int from, const off_t* from_at,
                                                  int into, const off_t* into_at, size_t length,
                                                  Copy&& copy) {
  const bool is_from_file = is_traced(from);
  const bool is_into_file = is_traced(into);
  if (!is_from_file && !is_into_file) return copy();
  prepare();
  const void* caller = __builtin_return_address(0);
  const std::uint64_t begin = ticks();
  const ssize_t result = copy();
  const std::uint64_t end = ticks();
  const std::int64_t told = told_result(result);
  const Told reading = at(from, side(from_at, told), length);
  Told writing = at(into, side(into_at, told), length);
  writing.argument = 1;
  if (is_from_file) tell(call, reading, begin, is_into_file ? begin : end, told, caller);
  if (is_into_file) tell(call, writing, begin, end, told, caller);
  return result;
}

int error_of(const aiocb& asked) { return ::aio_error(&asked); }
int error_of(const aiocb64& asked) { return ::aio_error64(&asked); }

/// An asynchronous call is told where its result is asked for, which says what it moved, also of
/// those that lio_listio() begins. The C library carries it out in a thread of its own, by calls
/// that nobody sees: how long it took is not known.
template <typename Asked, typename Return>
[[gnu::always_inline]] inline ssize_t traced_result(Asked& asked, Return&& give) {
  constexpr int with_long_offsets = 128;  // glibc marks aio_read64() and aio_write64() so.
  const int code = asked.aio_lio_opcode & ~with_long_offsets;
  if ((code != LIO_READ && code != LIO_WRITE) || !is_traced(asked.aio_fildes)) return give(&asked);
  prepare();
  const auto call = code == LIO_READ ? TracedCall::aio_read : TracedCall::aio_write;
  const Told told = at(asked.aio_fildes, asked.aio_offset, asked.aio_nbytes);
  const int error = error_of(asked);
  const std::uint64_t begin = ticks();
  const ssize_t result = give(&asked);
  tell(call, told, begin, ticks(), error == 0 ? result : -error, __builtin_return_address(0));
  return result;
}

}  // namespace
}  // namespace forebay::trace

using namespace forebay::trace;
using forebay::TracedCall;

extern "C" {

FOREBAY_EXPORTED ssize_t read(int fd, void* buffer, size_t count) {
  return traced_by(TracedCall::read, at_position(fd, count),
                   [&] { return real().read(fd, buffer, count); });
}

FOREBAY_EXPORTED ssize_t pread(int fd, void* buffer, size_t count, off_t offset) {
  return traced_by(TracedCall::pread, at(fd, offset, count),
                   [&] { return real().pread64(fd, buffer, count, offset); });
}

FOREBAY_EXPORTED ssize_t pread64(int fd, void* buffer, size_t count, off64_t offset)
    FOREBAY_SAME_AS(pread);

FOREBAY_EXPORTED ssize_t readv(int fd, const iovec* pieces, int count) {
  return traced_pieces(TracedCall::readv, fd, -1, pieces, count,
                       [&] { return real().readv(fd, pieces, count); });
}

FOREBAY_EXPORTED ssize_t preadv(int fd, const iovec* pieces, int count, off_t offset) {
  return traced_pieces(TracedCall::preadv, fd, offset, pieces, count,
                       [&] { return real().preadv64(fd, pieces, count, offset); });
}

FOREBAY_EXPORTED ssize_t preadv64(int fd, const iovec* pieces, int count, off64_t offset)
    FOREBAY_SAME_AS(preadv);

FOREBAY_EXPORTED ssize_t preadv2(int fd, const iovec* pieces, int count, off_t offset, int flags) {
  return traced_pieces(TracedCall::preadv2, fd, offset, pieces, count,
                       [&] { return real().preadv64v2(fd, pieces, count, offset, flags); });
}

FOREBAY_EXPORTED ssize_t preadv64v2(int fd, const iovec* pieces, int count, off64_t offset,
                                    int flags) FOREBAY_SAME_AS(preadv2);

FOREBAY_EXPORTED ssize_t write(int fd, const void* buffer, size_t count) {
  return traced_by(TracedCall::write, at_position(fd, count),
                   [&] { return real().write(fd, buffer, count); });
}

FOREBAY_EXPORTED ssize_t pwrite(int fd, const void* buffer, size_t count, off_t offset) {
  return traced_by(TracedCall::pwrite, at(fd, offset, count),
                   [&] { return real().pwrite64(fd, buffer, count, offset); });
}

FOREBAY_EXPORTED ssize_t pwrite64(int fd, const void* buffer, size_t count, off64_t offset)
    FOREBAY_SAME_AS(pwrite);

FOREBAY_EXPORTED ssize_t writev(int fd, const iovec* pieces, int count) {
  return traced_pieces(TracedCall::writev, fd, -1, pieces, count,
                       [&] { return real().writev(fd, pieces, count); });
}

FOREBAY_EXPORTED ssize_t pwritev(int fd, const iovec* pieces, int count, off_t offset) {
  return traced_pieces(TracedCall::pwritev, fd, offset, pieces, count,
                       [&] { return real().pwritev64(fd, pieces, count, offset); });
}

FOREBAY_EXPORTED ssize_t pwritev64(int fd, const iovec* pieces, int count, off64_t offset)
    FOREBAY_SAME_AS(pwritev);

FOREBAY_EXPORTED ssize_t pwritev2(int fd, const iovec* pieces, int count, off_t offset, int flags) {
  return traced_pieces(TracedCall::pwritev2, fd, offset, pieces, count,
                       [&] { return real().pwritev64v2(fd, pieces, count, offset, flags); });
}

FOREBAY_EXPORTED ssize_t pwritev64v2(int fd, const iovec* pieces, int count, off64_t offset,
                                     int flags) FOREBAY_SAME_AS(pwritev2);

FOREBAY_EXPORTED ssize_t aio_return(aiocb* asked) noexcept {
  return traced_result(*asked, real().aio_return);
}

FOREBAY_EXPORTED ssize_t aio_return64(aiocb64* asked) noexcept {
  return traced_result(*asked, real().aio_return64);
}

FOREBAY_EXPORTED off_t lseek(int fd, off_t offset, int whence) noexcept {
  return traced_by(TracedCall::lseek, {fd, offset, 0, static_cast<std::uint8_t>(whence)},
                   [&] { return real().lseek64(fd, offset, whence); });
}

FOREBAY_EXPORTED off64_t lseek64(int fd, off64_t offset, int whence) noexcept
    FOREBAY_SAME_AS(lseek);

FOREBAY_EXPORTED ssize_t copy_file_range(int from, off64_t* from_at, int into, off64_t* into_at,
                                         size_t length, unsigned flags) {
  return traced_copy(TracedCall::copy_file_range, from, from_at, into, into_at, length, [&] {
    return real().copy_file_range(from, from_at, into, into_at, length, flags);
  });
}

FOREBAY_EXPORTED ssize_t sendfile(int into, int from, off_t* from_at, size_t length) noexcept {
  return traced_copy(TracedCall::sendfile, from, from_at, into, nullptr, length,
                     [&] { return real().sendfile64(into, from, from_at, length); });
}

FOREBAY_EXPORTED ssize_t sendfile64(int into, int from, off64_t* from_at, size_t length) noexcept
    FOREBAY_SAME_AS(sendfile);

/// One of the two is a pipe, which is not traced.
FOREBAY_EXPORTED ssize_t splice(int from, off64_t* from_at, int into, off64_t* into_at,
                                size_t length, unsigned flags) {
  return traced_copy(TracedCall::splice, from, from_at, into, into_at, length,
                     [&] { return real().splice(from, from_at, into, into_at, length, flags); });
}

// What _FORTIFY_SOURCE makes of the plain calls.
// NOLINTBEGIN(bugprone-reserved-identifier): the names are the C library's.
FOREBAY_EXPORTED ssize_t __read_chk(int fd, void* buffer, size_t count, size_t room) {
  return traced_by(TracedCall::read, at_position(fd, count),
                   [&] { return real().__read_chk(fd, buffer, count, room); });
}

FOREBAY_EXPORTED ssize_t __pread_chk(int fd, void* buffer, size_t count, off_t offset,
                                     size_t room) {
  return traced_by(TracedCall::pread, at(fd, offset, count),
                   [&] { return real().__pread64_chk(fd, buffer, count, offset, room); });
}

FOREBAY_EXPORTED ssize_t __pread64_chk(int fd, void* buffer, size_t count, off64_t offset,
                                       size_t room) FOREBAY_SAME_AS(__pread_chk);
// NOLINTEND(bugprone-reserved-identifier)

}  // extern "C"
