// The calls that read, as programs make them: a listed descriptor is served from memory as far as
// it can be, everything else is the C library's.

#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>

#include "core/engine/prefetch/steady_time.hpp"
#include "core/intercept/posix/cancellation.hpp"
#include "core/intercept/posix/exported.hpp"
#include "core/intercept/posix/managed_files.hpp"
#include "core/intercept/posix/program_memory.hpp"
#include "core/intercept/posix/real_calls.hpp"
#include "core/intercept/posix/registry.hpp"
#include "core/storage/file_version.hpp"

namespace forebay::posix {
namespace {

/// Linux moves at most this many bytes a call (read(2)).
constexpr size_t most_transferred = 0x7ffff000;

/// `call`, of the kernel's, reads from `offset` on; if that is negative, from the position.
/// `is_followed`: as was_read() has it.
template <typename Call>
ssize_t by_kernel(int fd, off_t offset, bool is_followed, Call call) noexcept {
  const std::int64_t began_ns = steady_ns();
  const ssize_t moved = call();
  was_read(fd, offset, moved, steady_ns() - began_ns, is_followed);
  return moved;
}

ssize_t managed_pread(int fd, void* buffer, size_t count, off_t offset) noexcept {
  if (count == 0 || count > most_transferred || offset < 0) {
    return by_kernel(fd, offset, false, [=] { return real().pread(fd, buffer, count, offset); });
  }
  const int before = errno;
  const auto [served, is_followed] = serve_at(fd, buffer, count, offset);
  errno = before;
  if (served == count) return static_cast<ssize_t>(count);
  const off_t behind = offset + static_cast<off_t>(served);
  char* const into = static_cast<char*>(buffer) + served;
  const size_t missing = count - served;
  const ssize_t rest =
      by_kernel(fd, behind, is_followed, [=] { return real().pread(fd, into, missing, behind); });
  if (rest < 0 && served > 0) {
    errno = before;
    return static_cast<ssize_t>(served);  // A short read; the next one meets the error.
  }
  return rest < 0 ? rest : static_cast<ssize_t>(served) + rest;
}

/// The position goes back by as much as was claimed in vain: whoever moved it since is not undone.
/// errno may change.
void give_back(int fd, size_t bytes) noexcept {
  if (bytes > 0) real().lseek(fd, -static_cast<off_t>(bytes), SEEK_CUR);
}

ssize_t managed_read(int fd, void* buffer, size_t count) noexcept {
  const auto plain = [=] { return real().read(fd, buffer, count); };
  if (count == 0 || count > most_transferred) return by_kernel(fd, -1, false, plain);
  const int before = errno;
  const PositionedServe serve = serve_next(fd, buffer, count);
  errno = before;
  if (serve.claimed == 0) return by_kernel(fd, -1, serve.is_followed, plain);
  if (serve.bytes == serve.claimed) return static_cast<ssize_t>(serve.bytes);
  const off_t behind = serve.offset + static_cast<off_t>(serve.bytes);
  char* const into = static_cast<char*>(buffer) + serve.bytes;
  const ssize_t rest = by_kernel(fd, behind, serve.is_followed, [=] {
    return real().pread(fd, into, serve.claimed - serve.bytes, behind);
  });
  const int failed = errno;
  const size_t moved = serve.bytes + static_cast<size_t>(std::max<ssize_t>(rest, 0));
  give_back(fd, serve.claimed - moved);
  errno = rest < 0 && moved == 0 ? failed : before;
  return rest < 0 && moved == 0 ? -1 : static_cast<ssize_t>(moved);
}

bool overlap(const void* one, size_t length, const void* other, size_t other_length) noexcept {
  const auto begin = reinterpret_cast<std::uintptr_t>(one);
  const auto other_begin = reinterpret_cast<std::uintptr_t>(other);
  return length > 0 && other_length > 0 && begin < other_begin + other_length &&
         other_begin < begin + length;
}

bool overlap(const iovec& one, const iovec& other) noexcept {
  return overlap(one.iov_base, one.iov_len, other.iov_base, other.iov_len);
}

/// Whether it does not matter in which order pieces are filled, nor when their array is read.
bool are_apart(const iovec* pieces, int count) noexcept {
  const char* begin = nullptr;
  const char* end = nullptr;
  bool is_rising = true, is_falling = true;
  for (int i = 0; i < count; ++i) {
    const auto& [base, length] = pieces[i];
    if (overlap(base, length, pieces, static_cast<size_t>(count) * sizeof(iovec))) return false;
    if (length == 0) continue;
    is_rising = is_rising && end <= base;
    is_falling =
        is_falling && (begin == nullptr || static_cast<const char*>(base) + length <= begin);
    begin = static_cast<const char*>(base);
    end = begin + length;
  }
  for (int i = 0; !is_rising && !is_falling && i < count; ++i) {
    for (int other = i + 1; other < count; ++other) {
      if (overlap(pieces[i], pieces[other])) return false;
    }
  }
  return true;
}

/// The bytes of pieces that the kernel would take in one call at `offset`; 0: not these, which are
/// left to it, with its errors.
size_t plain_length(const iovec* pieces, int count, off_t offset) noexcept {
  constexpr int most_pieces = 1024;  // IOV_MAX of Linux.
  constexpr auto most_address = std::numeric_limits<std::uintptr_t>::max() / 2;
  if (count < 1 || count > most_pieces || offset < 0) return 0;
  const int before = errno;
  const bool can_be_seen = can_be_read(pieces, static_cast<size_t>(count) * sizeof(iovec));
  errno = before;
  if (!can_be_seen) return 0;
  size_t sum = 0;
  for (int i = 0; i < count; ++i) {
    if (pieces[i].iov_len > most_transferred - sum) return 0;
    sum += pieces[i].iov_len;
    // Of what cannot be a program's memory the kernel reads nothing, nor of any other piece.
    const auto begin = reinterpret_cast<std::uintptr_t>(pieces[i].iov_base);
    if (begin > most_address - pieces[i].iov_len) return 0;
  }
  off_t end = 0;
  if (__builtin_add_overflow(offset, static_cast<off_t>(sum), &end)) return 0;
  return are_apart(pieces, count) ? sum : 0;
}

/// What is read into pieces, one behind the other, by a listed descriptor. Each is served from
/// memory as far as it can be; pieces of which nothing is there wait for one call of the kernel,
/// and are filled behind one that was served.
class ScatteredRead {
 public:
  ScatteredRead(int fd, const iovec* pieces, off_t offset) noexcept
      : fd_(fd), pieces_(pieces), offset_(offset) {}

  /// The first `most` bytes of `count` pieces, as preadv() would.
  ssize_t read(int count, size_t most) noexcept {
    const int before = errno;
    bool goes_on = true;
    for (int i = 0; goes_on && i < count; ++i) {
      const size_t length = std::min(pieces_[i].iov_len, most - done_ - waiting_);
      if (length > 0) goes_on = read_piece(i, length);
    }
    if (goes_on) read_waiting();
    if (has_failed_ && done_ == 0) return -1;
    errno = before;  // A short read; the next one meets the error.
    return static_cast<ssize_t>(done_);
  }

 private:
  bool read_piece(int i, size_t length) noexcept {
    auto* const into = static_cast<char*>(pieces_[i].iov_base);
    const Serve serve = serve_at(fd_, into, length, behind(done_ + waiting_));
    if (serve.bytes == 0 && length == pieces_[i].iov_len) {
      if (waiting_ == 0) first_waiting_ = i;
      waiting_ += length;
      end_waiting_ = i + 1;
      is_followed_ = serve.is_followed;
      return true;
    }
    if (!read_waiting()) return false;
    done_ += serve.bytes;
    if (serve.bytes == length) return true;
    const size_t missing = length - serve.bytes;
    is_followed_ = serve.is_followed;
    return add(missing,
               [&] { return real().pread(fd_, into + serve.bytes, missing, behind(done_)); });
  }

  bool read_waiting() noexcept {
    if (waiting_ == 0) return true;
    const int count = end_waiting_ - first_waiting_;
    return add(std::exchange(waiting_, 0),
               [&] { return real().preadv(fd_, pieces_ + first_waiting_, count, behind(done_)); });
  }

  /// Whether all of `length` bytes came by `call`.
  template <typename Call>
  bool add(size_t length, Call call) noexcept {
    const ssize_t moved = by_kernel(fd_, behind(done_), is_followed_, call);
    has_failed_ = moved < 0;
    if (moved > 0) done_ += static_cast<size_t>(moved);
    return moved == static_cast<ssize_t>(length);
  }

  off_t behind(size_t bytes) const noexcept { return offset_ + static_cast<off_t>(bytes); }

  const int fd_;
  const iovec* const pieces_;
  const off_t offset_;
  size_t done_ = 0;     ///< Bytes that were read.
  size_t waiting_ = 0;  ///< Behind them, of pieces that are the kernel's to read.
  int first_waiting_ = 0;
  int end_waiting_ = 0;
  bool is_followed_ = false;  ///< What is the kernel's to read.
  bool has_failed_ = false;
};

ssize_t managed_preadv(int fd, const iovec* pieces, int count, off_t offset) noexcept {
  const size_t length = plain_length(pieces, count, offset);
  if (length == 0) {
    return by_kernel(fd, offset, false, [=] { return real().preadv(fd, pieces, count, offset); });
  }
  return ScatteredRead(fd, pieces, offset).read(count, length);
}

/// Bytes that a read takes from the position on. None: the kernel knows the position, or the end.
struct Claim {
  size_t bytes = 0;
  off_t offset = 0;
};

/// By one step forward of the position for all pieces, as readv() would go: whoever moves it at the
/// same time comes before or after it. Not beyond the end of the file, as far as that is known.
Claim claim_next(int fd, size_t count) noexcept {
  const ManagedFile* managed = listed(fd);
  if (managed == nullptr || managed->is_over || managed->position_is_shared || recording ||
      inside || !is_own_process(*registry.load())) {
    return {};
  }
  const off_t position = real().lseek(fd, 0, SEEK_CUR);
  const auto version = version_of(fd);
  if (!version || position < 0 || position >= version->size) return {};
  const size_t claimed = std::min(count, static_cast<size_t>(version->size - position));
  const off_t after = real().lseek(fd, static_cast<off_t>(claimed), SEEK_CUR);
  if (after > version->size) give_back(fd, claimed);
  if (after < 0 || after > version->size) return {};
  return {claimed, after - static_cast<off_t>(claimed)};
}

ssize_t managed_readv(int fd, const iovec* pieces, int count) noexcept {
  const size_t length = plain_length(pieces, count, 0);
  if (length > 0 && count == 1) return managed_read(fd, pieces[0].iov_base, length);
  const int before = errno;
  const Claim claim = length > 0 ? claim_next(fd, length) : Claim{};
  errno = before;
  if (claim.bytes == 0) {
    return by_kernel(fd, -1, false, [=] { return real().readv(fd, pieces, count); });
  }
  const ssize_t moved = ScatteredRead(fd, pieces, claim.offset).read(count, claim.bytes);
  const int failed = errno;
  give_back(fd, claim.bytes - static_cast<size_t>(std::max<ssize_t>(moved, 0)));
  errno = failed;
  return moved;
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

FOREBAY_EXPORTED ssize_t pread64(int fd, void* buffer, size_t count, off64_t offset)
    FOREBAY_SAME_AS(pread);

/// Only for a recording of what C++ streams read, which seek so themselves.
FOREBAY_EXPORTED off_t lseek(int fd, off_t offset, int whence) noexcept {
  if (!forebay::posix::recording || listed(fd) == nullptr) return real().lseek(fd, offset, whence);
  forebay::posix::stream_read(fd);
  const off_t position = real().lseek(fd, offset, whence);
  forebay::posix::stream_sought(fd, position);
  return position;
}

FOREBAY_EXPORTED off64_t lseek64(int fd, off64_t offset, int whence) noexcept
    FOREBAY_SAME_AS(lseek);

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

FOREBAY_EXPORTED ssize_t preadv64(int fd, const iovec* pieces, int count, off64_t offset)
    FOREBAY_SAME_AS(preadv);

FOREBAY_EXPORTED ssize_t preadv2(int fd, const iovec* pieces, int count, off_t offset, int flags) {
  // These change nothing of a read that goes through a cache (readv(2)). Who asks not to wait
  // (RWF_NOWAIT) would wait here for what is on its way.
  constexpr int without_effect = RWF_HIPRI | RWF_DSYNC | RWF_SYNC;
  if (listed(fd) == nullptr) return real().preadv2(fd, pieces, count, offset, flags);
  const CancellationPoint point;
  if ((flags & ~without_effect) != 0) {
    return forebay::posix::by_kernel(
        fd, offset, false, [=] { return real().preadv2(fd, pieces, count, offset, flags); });
  }
  if (offset == -1) return forebay::posix::managed_readv(fd, pieces, count);
  return forebay::posix::managed_preadv(fd, pieces, count, offset);
}

FOREBAY_EXPORTED ssize_t preadv64v2(int fd, const iovec* pieces, int count, off64_t offset,
                                    int flags) FOREBAY_SAME_AS(preadv2);

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
                                       size_t room) FOREBAY_SAME_AS(__pread_chk);
// NOLINTEND(bugprone-reserved-identifier)

}  // extern "C"
