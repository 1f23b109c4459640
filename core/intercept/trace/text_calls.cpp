// Lines and formatted text, by C streams, and by a descriptor (dprintf). Functions with a list of
// arguments stand for those that take them one by one.

#include <stdio.h>

#include <algorithm>
#include <cerrno>
#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "core/intercept/posix/exported.hpp"
#include "core/intercept/trace/real_calls.hpp"
#include "core/intercept/trace/stream_place.hpp"
#include "core/intercept/trace/traced_call.hpp"

namespace forebay::trace {
namespace {

/// The part of a stream's buffer that is still to be read, before a call.
class Unread {
 public:
  explicit Unread(FILE* stream)
      : stream_(stream), next_(stream->_IO_read_ptr), end_(stream->_IO_read_end) {}

  /// What the call has read, if the buffer was filled once at most.
  std::int64_t read() const {
    if (stream_->_IO_read_end == end_ && stream_->_IO_read_ptr >= next_) {
      return stream_->_IO_read_ptr - next_;
    }
    return (end_ - next_) + (stream_->_IO_read_ptr - stream_->_IO_read_base);
  }
  bool was_filled() const { return stream_->_IO_read_end != end_ || stream_->_IO_read_ptr < next_; }

 private:
  FILE* stream_;
  const char* next_;
  const char* end_;
};

/// A string may hold zero bytes of the file's: then it does not say how long it is.
template <typename Call>
[[gnu::always_inline]] inline char* traced_fgets(int room, FILE* stream, Call&& body) {
  const Unread before(stream);
  return traced_stream(
      TracedCall::fgets, stream, Asks::where_not_known, body,
      [&](const char* text, const StreamPlace& place) {
        const std::int64_t gone = std::max<std::int64_t>(before.read(), 0);
        const auto length = static_cast<std::int64_t>(text == nullptr ? 0 : std::strlen(text));
        const std::int64_t bytes = std::max(length, place.is_alone ? gone : 0);
        return StreamMove{std::max(room - 1, 0), told_bytes(bytes, stream, place), length == gone};
      });
}

template <typename Call>
[[gnu::always_inline]] inline ssize_t traced_line(TracedCall call, FILE* stream, Call&& body) {
  return traced_stream(call, stream, Asks::where_not_known, body,
                       [=](ssize_t length, const StreamPlace& place) {
                         const std::int64_t bytes = std::max<std::int64_t>(length, 0);
                         return StreamMove{bytes, told_bytes(bytes, stream, place), length >= 0};
                       });
}

/// `length_of` says what a result that is no failure has written.
template <typename Call, typename Length>
[[gnu::always_inline]] inline int traced_output(TracedCall call, FILE* stream, Call&& body,
                                                Length&& length_of) {
  return traced_stream(call, stream, Asks::where_not_known, body,
                       [&](int result, const StreamPlace&) {
                         if (result < 0) return StreamMove{0, -errno, false};
                         const std::int64_t length = length_of(result);
                         return StreamMove{length, length, true};
                       });
}

template <typename Call>
[[gnu::always_inline]] inline int traced_print(TracedCall call, FILE* stream, Call&& body) {
  return traced_output(call, stream, body, [](int length) { return std::int64_t{length}; });
}

/// `end`: bytes behind the text.
template <typename Call>
[[gnu::always_inline]] inline int traced_puts(TracedCall call, const char* text, int end,
                                              FILE* stream, Call&& body) {
  return traced_output(call, stream, body,
                       [=](int) { return static_cast<std::int64_t>(std::strlen(text)) + end; });
}

/// What may be longer than the buffer does not tell by that how much was read: then the stream is
/// asked.
template <typename Call>
[[gnu::always_inline]] inline int traced_scan(TracedCall call, FILE* stream, const char* format,
                                              Call&& body) {
  constexpr std::ptrdiff_t longest_number = 512;
  const bool asks = stream->_IO_buf_end - stream->_IO_buf_base < longest_number ||
                    std::strpbrk(format, "sScC[") != nullptr;
  const Unread before(stream);
  return traced_stream(call, stream, asks ? Asks::always : Asks::where_not_known, body,
                       [&](int, const StreamPlace& place) {
                         std::int64_t bytes = before.read();
                         bool is_exact = !asks && !before.was_filled();
                         if (asks && place.offset >= 0) {
                           if (const std::int64_t after = asked(stream); after >= place.offset) {
                             bytes = after - place.offset;
                             is_exact = true;
                           }
                         }
                         bytes = std::max<std::int64_t>(bytes, 0);
                         return StreamMove{bytes, told_bytes(bytes, stream, place), is_exact};
                       });
}

/// By a descriptor, at its position.
template <typename Call>
[[gnu::always_inline]] inline int traced_print_by(int fd, Call&& body) {
  if (!is_traced(fd)) return body();
  prepare();
  const std::uint64_t begin = ticks();
  const int length = body();
  const std::uint64_t end = ticks();
  tell(TracedCall::dprintf, {fd, -1, std::max(length, 0), 0}, begin, end, told_result(length),
       __builtin_return_address(0));
  return length;
}

}  // namespace
}  // namespace forebay::trace

using namespace forebay::trace;
using forebay::TracedCall;

// The C library's headers define some of these inline, and have others for what is called so.
#define FOREBAY_TRACED(result, name, parameters)                   \
  FOREBAY_EXPORTED result traced_##name parameters __asm__(#name); \
  result traced_##name parameters

// `body` finds the arguments behind `last` in `arguments`.
#define FOREBAY_WITH_ARGUMENTS(last, body) \
  va_list arguments;                       \
  va_start(arguments, last);               \
  const int result = body;                 \
  va_end(arguments);                       \
  return result

extern "C" {

// NOLINTBEGIN(bugprone-reserved-identifier): the names are the C library's.
FOREBAY_TRACED(char*, fgets, (char* text, int room, FILE* stream)) {
  return traced_fgets(room, stream, [=] { return real().fgets(text, room, stream); });
}

FOREBAY_TRACED(char*, fgets_unlocked, (char* text, int room, FILE* stream)) {
  return traced_fgets(room, stream, [=] { return real().fgets_unlocked(text, room, stream); });
}

FOREBAY_TRACED(char*, __fgets_chk, (char* text, size_t size, int room, FILE* stream)) {
  return traced_fgets(room, stream, [=] { return real().__fgets_chk(text, size, room, stream); });
}

FOREBAY_TRACED(char*, __fgets_unlocked_chk, (char* text, size_t size, int room, FILE* stream)) {
  return traced_fgets(room, stream,
                      [=] { return real().__fgets_unlocked_chk(text, size, room, stream); });
}

FOREBAY_TRACED(ssize_t, getline, (char** line, size_t* room, FILE* stream)) {
  return traced_line(TracedCall::getline, stream,
                     [=] { return real().getline(line, room, stream); });
}

FOREBAY_TRACED(ssize_t, getdelim, (char** line, size_t* room, int end, FILE* stream)) {
  return traced_line(TracedCall::getdelim, stream,
                     [=] { return real().getdelim(line, room, end, stream); });
}

/// What the headers make of getline().
FOREBAY_TRACED(ssize_t, __getdelim, (char** line, size_t* room, int end, FILE* stream)) {
  return traced_line(end == '\n' ? TracedCall::getline : TracedCall::getdelim, stream,
                     [=] { return real().getdelim(line, room, end, stream); });
}

FOREBAY_TRACED(int, fputs, (const char* text, FILE* stream)) {
  return traced_puts(TracedCall::fputs, text, 0, stream,
                     [=] { return real().fputs(text, stream); });
}

FOREBAY_TRACED(int, fputs_unlocked, (const char* text, FILE* stream)) {
  return traced_puts(TracedCall::fputs, text, 0, stream,
                     [=] { return real().fputs_unlocked(text, stream); });
}

FOREBAY_TRACED(int, puts, (const char* text)) {
  return traced_puts(TracedCall::puts, text, 1, stdout, [=] { return real().puts(text); });
}

FOREBAY_TRACED(int, vfprintf, (FILE * stream, const char* format, va_list arguments)) {
  return traced_print(TracedCall::fprintf, stream,
                      [&] { return real().vfprintf(stream, format, arguments); });
}

FOREBAY_TRACED(int, fprintf, (FILE * stream, const char* format, ...)) {
  FOREBAY_WITH_ARGUMENTS(format, traced_print(TracedCall::fprintf, stream, [&] {
                           return real().vfprintf(stream, format, arguments);
                         }));
}

FOREBAY_TRACED(int, __vfprintf_chk,
               (FILE * stream, int flag, const char* format, va_list arguments)) {
  return traced_print(TracedCall::fprintf, stream,
                      [&] { return real().__vfprintf_chk(stream, flag, format, arguments); });
}

FOREBAY_TRACED(int, __fprintf_chk, (FILE * stream, int flag, const char* format, ...)) {
  FOREBAY_WITH_ARGUMENTS(format, traced_print(TracedCall::fprintf, stream, [&] {
                           return real().__vfprintf_chk(stream, flag, format, arguments);
                         }));
}

FOREBAY_TRACED(int, vprintf, (const char* format, va_list arguments)) {
  return traced_print(TracedCall::printf, stdout,
                      [&] { return real().vfprintf(stdout, format, arguments); });
}

FOREBAY_TRACED(int, printf, (const char* format, ...)) {
  FOREBAY_WITH_ARGUMENTS(format, traced_print(TracedCall::printf, stdout, [&] {
                           return real().vfprintf(stdout, format, arguments);
                         }));
}

FOREBAY_TRACED(int, __vprintf_chk, (int flag, const char* format, va_list arguments)) {
  return traced_print(TracedCall::printf, stdout,
                      [&] { return real().__vfprintf_chk(stdout, flag, format, arguments); });
}

FOREBAY_TRACED(int, __printf_chk, (int flag, const char* format, ...)) {
  FOREBAY_WITH_ARGUMENTS(format, traced_print(TracedCall::printf, stdout, [&] {
                           return real().__vfprintf_chk(stdout, flag, format, arguments);
                         }));
}

FOREBAY_TRACED(int, vdprintf, (int fd, const char* format, va_list arguments)) {
  return traced_print_by(fd, [&] { return real().vdprintf(fd, format, arguments); });
}

FOREBAY_TRACED(int, dprintf, (int fd, const char* format, ...)) {
  FOREBAY_WITH_ARGUMENTS(
      format, traced_print_by(fd, [&] { return real().vdprintf(fd, format, arguments); }));
}

FOREBAY_TRACED(int, __vdprintf_chk, (int fd, int flag, const char* format, va_list arguments)) {
  return traced_print_by(fd, [&] { return real().__vdprintf_chk(fd, flag, format, arguments); });
}

FOREBAY_TRACED(int, __dprintf_chk, (int fd, int flag, const char* format, ...)) {
  FOREBAY_WITH_ARGUMENTS(format, traced_print_by(fd, [&] {
                           return real().__vdprintf_chk(fd, flag, format, arguments);
                         }));
}

// The functions of one standard of C for formatted input, all by its `vfscanf`.
#define FOREBAY_TRACED_SCANS(prefix)                                                             \
  FOREBAY_TRACED(int, prefix##vfscanf, (FILE * stream, const char* format, va_list arguments)) { \
    return traced_scan(TracedCall::fscanf, stream, format,                                       \
                       [&] { return real().prefix##vfscanf(stream, format, arguments); });       \
  }                                                                                              \
  FOREBAY_TRACED(int, prefix##fscanf, (FILE * stream, const char* format, ...)) {                \
    FOREBAY_WITH_ARGUMENTS(format, traced_scan(TracedCall::fscanf, stream, format, [&] {         \
                             return real().prefix##vfscanf(stream, format, arguments);           \
                           }));                                                                  \
  }                                                                                              \
  FOREBAY_TRACED(int, prefix##vscanf, (const char* format, va_list arguments)) {                 \
    return traced_scan(TracedCall::scanf, stdin, format,                                         \
                       [&] { return real().prefix##vfscanf(stdin, format, arguments); });        \
  }                                                                                              \
  FOREBAY_TRACED(int, prefix##scanf, (const char* format, ...)) {                                \
    FOREBAY_WITH_ARGUMENTS(format, traced_scan(TracedCall::scanf, stdin, format, [&] {           \
                             return real().prefix##vfscanf(stdin, format, arguments);            \
                           }));                                                                  \
  }

FOREBAY_TRACED_SCANS()
FOREBAY_TRACED_SCANS(__isoc99_)
FOREBAY_TRACED_SCANS(__isoc23_)
// NOLINTEND(bugprone-reserved-identifier)

}  // extern "C"
