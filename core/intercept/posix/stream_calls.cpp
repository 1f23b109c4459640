// C streams. The C library reads for them by calls of its own that nobody sees, hence what they
// will read is brought into the page cache, and their position says how far they have come. Their
// buffers, positions and errors stay the C library's.

#include <fcntl.h>
#include <stdio.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>

#include "core/intercept/posix/all_descriptors.hpp"
#include "core/intercept/posix/cancellation.hpp"
#include "core/intercept/posix/exported.hpp"
#include "core/intercept/posix/managed_files.hpp"
#include "core/intercept/posix/real_calls.hpp"

namespace forebay::posix {
namespace {

/// The C library reads more than this by one call of the kernel, during which the position says
/// nothing.
constexpr size_t longest_read = size_t{256} * 1024;

/// What stands before a comma; behind it is the encoding.
bool has(const char* mode, char letter) {
  const size_t length = std::strcspn(mode, ",");
  return std::memchr(mode, letter, length) != nullptr;
}

/// The stream only reads, by calls: not (the letter m) through a mapping.
bool only_reads(const char* mode) { return mode[0] == 'r' && !has(mode, '+') && !has(mode, 'm'); }

int access_of(const char* mode) {
  if (only_reads(mode)) return O_RDONLY;
  return mode[0] == 'r' ? O_RDWR : O_WRONLY;
}

FILE* after_open(FILE* stream, const char* path, const char* mode) noexcept {
  const int fd = stream == nullptr ? -1 : ::fileno(stream);
  if (fd < 0) return stream;
  const bool by_mapping = mode[0] == 'r' && has(mode, 'm');
  if (!by_mapping) {
    opened(fd, AT_FDCWD, path, access_of(mode), Reader::stream);
  }
  return stream;
}

/// What is listed that `stream` reads by; -1: there is nothing. errno stays: that a stream has no
/// descriptor (fmemopen) is no error of the program's.
int listed_of(FILE* stream) noexcept {
  const int before = errno;
  const int fd = ::fileno(stream);
  errno = before;
  return listed(fd) != nullptr ? fd : -1;
}

void before_close(FILE* stream) noexcept {
  if (const int fd = listed_of(stream); fd >= 0) closing(fd);
}

/// Of a listed descriptor, in pieces.
size_t managed_fread(void* buffer, size_t length, FILE* stream) noexcept {
  ::flockfile(stream);
  auto* into = static_cast<char*>(buffer);
  size_t done = 0;
  while (done < length) {
    const size_t piece = std::min(length - done, longest_read);
    const size_t moved = real().fread_unlocked(into + done, 1, piece, stream);
    done += moved;
    if (moved < piece) break;
  }
  ::funlockfile(stream);
  return done;
}

/// A call that seeks in a stream, which a recording has to know of.
template <typename Seek>
auto seek_in(FILE* stream, Seek seek) {
  const int fd = recording ? listed_of(stream) : -1;
  if (fd >= 0) stream_read(fd);
  const auto result = seek();
  if (fd >= 0) stream_sought(fd, ::ftello(stream));
  return result;
}

/// What fread and fread_unlocked share; `plain` is the C library's own, for all other streams. A
/// thread may be cancelled in it: not noexcept, as freopen below.
size_t read_stream(size_t (*plain)(void*, size_t, size_t, FILE*), void* buffer, size_t size,
                   size_t count, FILE* stream) {
  const int fd = listed_of(stream);
  size_t length = 0;
  if (fd < 0 || __builtin_mul_overflow(size, count, &length) || length == 0) {
    return plain(buffer, size, count, stream);
  }
  const CancellationPoint point;
  return managed_fread(buffer, length, stream) / size;
}

/// Whether what is read may be read without the C library's check of the room for it.
bool fits(size_t room, size_t size, size_t count, FILE* stream) noexcept {
  size_t length = 0;
  return listed_of(stream) >= 0 && !__builtin_mul_overflow(size, count, &length) && length <= room;
}

}  // namespace
}  // namespace forebay::posix

using namespace forebay::posix;

extern "C" {

FOREBAY_EXPORTED FILE* fopen(const char* path, const char* mode) {
  return after_open(with_all_descriptors([=] { return real().fopen(path, mode); }), path, mode);
}

FOREBAY_EXPORTED FILE* fopen64(const char* path, const char* mode) {
  return after_open(with_all_descriptors([=] { return real().fopen64(path, mode); }), path, mode);
}

FOREBAY_EXPORTED FILE* fdopen(int fd, const char* mode) {
  FILE* stream = real().fdopen(fd, mode);
  if (stream != nullptr && listed(fd) != nullptr && only_reads(mode)) is_stream(fd);
  return stream;
}

// A thread may be cancelled where these wait: no function that throws nothing stands below them
// then.

FOREBAY_EXPORTED FILE* freopen(const char* path, const char* mode, FILE* stream) {
  before_close(stream);
  FILE* result = real().freopen(path, mode, stream);
  return path == nullptr ? result : after_open(result, path, mode);
}

FOREBAY_EXPORTED FILE* freopen64(const char* path, const char* mode, FILE* stream) {
  before_close(stream);
  FILE* result = real().freopen64(path, mode, stream);
  return path == nullptr ? result : after_open(result, path, mode);
}

FOREBAY_EXPORTED int fclose(FILE* stream) {
  before_close(stream);
  return real().fclose(stream);
}

FOREBAY_EXPORTED int fseek(FILE* stream, long offset, int whence) {
  return seek_in(stream, [&] { return real().fseek(stream, offset, whence); });
}

FOREBAY_EXPORTED int fseeko(FILE* stream, off_t offset, int whence) {
  return seek_in(stream, [&] { return real().fseeko(stream, offset, whence); });
}

FOREBAY_EXPORTED int fseeko64(FILE* stream, off64_t offset, int whence) FOREBAY_SAME_AS(fseeko);

FOREBAY_EXPORTED int fsetpos(FILE* stream, const fpos_t* position) {
  return seek_in(stream, [&] { return real().fsetpos(stream, position); });
}

FOREBAY_EXPORTED int fsetpos64(FILE* stream, const fpos64_t* position) {
  return seek_in(stream, [&] { return real().fsetpos64(stream, position); });
}

FOREBAY_EXPORTED void rewind(FILE* stream) {
  seek_in(stream, [&] {
    real().rewind(stream);
    return 0;
  });
}

FOREBAY_EXPORTED size_t fread(void* buffer, size_t size, size_t count, FILE* stream) {
  return read_stream(real().fread, buffer, size, count, stream);
}

FOREBAY_EXPORTED size_t fread_unlocked(void* buffer, size_t size, size_t count, FILE* stream) {
  return read_stream(real().fread_unlocked, buffer, size, count, stream);
}

// What _FORTIFY_SOURCE makes of them. The C library's own end the program where there is no room.
// NOLINTBEGIN(bugprone-reserved-identifier): the names are the C library's.
FOREBAY_EXPORTED size_t __fread_chk(void* buffer, size_t room, size_t size, size_t count,
                                    FILE* stream) {
  return fits(room, size, count, stream) ? read_stream(real().fread, buffer, size, count, stream)
                                         : real().fread_chk(buffer, room, size, count, stream);
}

FOREBAY_EXPORTED size_t __fread_unlocked_chk(void* buffer, size_t room, size_t size, size_t count,
                                             FILE* stream) {
  return fits(room, size, count, stream)
             ? read_stream(real().fread_unlocked, buffer, size, count, stream)
             : real().fread_unlocked_chk(buffer, room, size, count, stream);
}
// NOLINTEND(bugprone-reserved-identifier)

}  // extern "C"
