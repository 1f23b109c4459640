// C streams as a whole, and what moves blocks of them. What the C library reads and writes for them
// is seen by nobody: their own calls are traced, in bytes.

#include <fcntl.h>
#include <stdio.h>

#include <cerrno>
#include <cstdint>
#include <cstring>

#include "core/intercept/posix/exported.hpp"
#include "core/intercept/trace/real_calls.hpp"
#include "core/intercept/trace/stream_place.hpp"
#include "core/intercept/trace/traced_call.hpp"

namespace forebay::trace {
namespace {

/// What stands before a comma; behind it is the encoding.
bool has(const char* mode, char letter) {
  return std::memchr(mode, letter, std::strcspn(mode, ",")) != nullptr;
}

/// As fopen opens it. [fopen(3)]
int flags_of(const char* mode) {
  const int access = has(mode, '+') ? O_RDWR : mode[0] == 'r' ? O_RDONLY : O_WRONLY;
  if (mode[0] == 'w') return access | O_CREAT | O_TRUNC;
  return mode[0] == 'a' ? access | O_CREAT | O_APPEND : access;
}

/// The file has no name, or none for long: it is called what the kernel calls it.
template <typename Open>
[[gnu::always_inline]] inline FILE* traced_tmpfile(Open&& open) {
  if (!is_on()) return open();
  FILE* stream = traced_opening_of(TracedCall::tmpfile, AT_FDCWD, O_RDWR | O_CREAT | O_EXCL, open,
                                   descriptor_of, key_of_file);
  forget_stream(descriptor_of(stream));
  return stream;
}

template <typename Open>
[[gnu::always_inline]] inline FILE* traced_fopen(TracedCall call, const char* path,
                                                 const char* mode, Open&& open) {
  if (mode == nullptr) return open();
  FILE* stream = traced_opening(call, AT_FDCWD, path, flags_of(mode), open, descriptor_of);
  forget_stream(descriptor_of(stream));
  if (stream != nullptr && is_wide(stream)) tell_wide(stream, __builtin_return_address(0));
  return stream;
}

/// What has to be told of a stream that ends, before that. Its descriptor.
[[gnu::always_inline]] inline int before_end(FILE* stream) {
  const int fd = descriptor_of(stream);
  if (is_known_traced(fd)) {
    prepare();
    const StreamPlace place = come_to(stream, fd, Asks::never);
    tell_characters(place, fd, __builtin_return_address(0));
    leave(stream, fd, place, false);
    forget_stream(fd);
  }
  return fd;
}

/// `count` items of `size` bytes.
template <typename Move>
[[gnu::always_inline]] inline size_t traced_items(TracedCall call, size_t size, size_t count,
                                                  FILE* stream, Move&& move) {
  return traced_stream(call, stream, Asks::where_not_known, move,
                       [=](size_t moved, const StreamPlace& place) {
                         const auto bytes = static_cast<std::int64_t>(moved * size);
                         // Of a piece of an item nothing is said.
                         const bool is_exact = moved == count || size == 1;
                         return StreamMove{static_cast<std::int64_t>(size * count),
                                           told_bytes(bytes, stream, place), is_exact};
                       });
}

template <typename Seek>
[[gnu::always_inline]] inline int traced_seek(FILE* stream, off_t offset, int whence, Seek&& seek) {
  const int fd = descriptor_of(stream);
  if (fd < 0 || !is_traced(fd)) return seek();
  prepare();
  const void* caller = __builtin_return_address(0);
  const StreamPlace place = come_to(stream, fd, Asks::never);
  tell_characters(place, fd, caller);
  const std::uint64_t begin = ticks();
  const int result = seek();
  const std::uint64_t end = ticks();
  const off_t position = result == 0 ? ::ftello(stream) : -errno;
  leave(stream, fd, {.is_alone = place.is_alone, .around = place.around}, position >= 0);
  tell(TracedCall::fseek, {fd, offset, 0, static_cast<std::uint8_t>(whence)}, begin, end, position,
       caller);
  return result;
}

/// Moves nothing but what is in the buffer.
[[gnu::always_inline]] inline int traced_flush(FILE* stream) {
  const int fd = descriptor_of(stream);
  const auto body = [&] { return real().fflush(stream); };
  if (fd < 0 || !is_traced(fd)) return body();
  prepare();
  const void* caller = __builtin_return_address(0);
  const StreamPlace place = come_to(stream, fd, Asks::never);
  tell_characters(place, fd, caller);
  const std::uint64_t begin = ticks();
  const int result = body();
  const std::uint64_t end = ticks();
  leave(stream, fd, place, result == 0);
  tell(TracedCall::fflush, {fd, -1, 0, 0}, begin, end, told_result(result), caller);
  return result;
}

}  // namespace
}  // namespace forebay::trace

using namespace forebay::trace;
using forebay::TracedCall;

extern "C" {

FOREBAY_EXPORTED FILE* fopen(const char* path, const char* mode) {
  return traced_fopen(TracedCall::fopen, path, mode, [&] { return real().fopen(path, mode); });
}

FOREBAY_EXPORTED FILE* fopen64(const char* path, const char* mode) {
  return traced_fopen(TracedCall::fopen, path, mode, [&] { return real().fopen64(path, mode); });
}

FOREBAY_EXPORTED FILE* freopen(const char* path, const char* mode, FILE* stream) {
  is_over(before_end(stream));
  return traced_fopen(TracedCall::freopen, path, mode,
                      [&] { return real().freopen(path, mode, stream); });
}

FOREBAY_EXPORTED FILE* freopen64(const char* path, const char* mode, FILE* stream) {
  is_over(before_end(stream));
  return traced_fopen(TracedCall::freopen, path, mode,
                      [&] { return real().freopen64(path, mode, stream); });
}

FOREBAY_EXPORTED FILE* tmpfile() {
  return traced_tmpfile([] { return real().tmpfile(); });
}

FOREBAY_EXPORTED FILE* tmpfile64() {
  return traced_tmpfile([] { return real().tmpfile64(); });
}

FOREBAY_EXPORTED int fclose(FILE* stream) {
  const int fd = before_end(stream);
  const bool is_file = is_known_traced(fd);
  is_over(fd);
  const auto body = [&] { return real().fclose(stream); };
  return is_file ? traced(TracedCall::fclose, {fd, -1, 0, 0}, body) : body();
}

FOREBAY_EXPORTED int fflush(FILE* stream) {
  if (stream == nullptr) {
    const int result = real().fflush(nullptr);
    are_flushed();
    return result;
  }
  return traced_flush(stream);
}

FOREBAY_EXPORTED int fseek(FILE* stream, long offset, int whence) {
  return traced_seek(stream, offset, whence, [&] { return real().fseek(stream, offset, whence); });
}

FOREBAY_EXPORTED int fseeko(FILE* stream, off_t offset, int whence) {
  return traced_seek(stream, offset, whence,
                     [&] { return real().fseeko64(stream, offset, whence); });
}

FOREBAY_EXPORTED int fseeko64(FILE* stream, off64_t offset, int whence) FOREBAY_SAME_AS(fseeko);

FOREBAY_EXPORTED void rewind(FILE* stream) {
  traced_seek(stream, 0, SEEK_SET, [&] {
    real().rewind(stream);
    return 0;
  });
}

FOREBAY_EXPORTED int fsetpos(FILE* stream, const fpos_t* position) {
  return traced_seek(stream, 0, SEEK_SET, [&] { return real().fsetpos(stream, position); });
}

FOREBAY_EXPORTED int fsetpos64(FILE* stream, const fpos64_t* position) {
  return traced_seek(stream, 0, SEEK_SET, [&] { return real().fsetpos64(stream, position); });
}

FOREBAY_EXPORTED size_t fread(void* buffer, size_t size, size_t count, FILE* stream) {
  return traced_items(TracedCall::fread, size, count, stream,
                      [&] { return real().fread(buffer, size, count, stream); });
}

FOREBAY_EXPORTED size_t fread_unlocked(void* buffer, size_t size, size_t count, FILE* stream) {
  return traced_items(TracedCall::fread, size, count, stream,
                      [&] { return real().fread_unlocked(buffer, size, count, stream); });
}

FOREBAY_EXPORTED size_t fwrite(const void* buffer, size_t size, size_t count, FILE* stream) {
  return traced_items(TracedCall::fwrite, size, count, stream,
                      [&] { return real().fwrite(buffer, size, count, stream); });
}

FOREBAY_EXPORTED size_t fwrite_unlocked(const void* buffer, size_t size, size_t count,
                                        FILE* stream) {
  return traced_items(TracedCall::fwrite, size, count, stream,
                      [&] { return real().fwrite_unlocked(buffer, size, count, stream); });
}

// What _FORTIFY_SOURCE makes of them.
// NOLINTBEGIN(bugprone-reserved-identifier): the names are the C library's.
FOREBAY_EXPORTED size_t __fread_chk(void* buffer, size_t room, size_t size, size_t count,
                                    FILE* stream) {
  return traced_items(TracedCall::fread, size, count, stream,
                      [&] { return real().__fread_chk(buffer, room, size, count, stream); });
}

FOREBAY_EXPORTED size_t __fread_unlocked_chk(void* buffer, size_t room, size_t size, size_t count,
                                             FILE* stream) {
  return traced_items(TracedCall::fread, size, count, stream, [&] {
    return real().__fread_unlocked_chk(buffer, room, size, count, stream);
  });
}
// NOLINTEND(bugprone-reserved-identifier)

}  // extern "C"
