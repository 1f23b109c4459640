// Calls that move a single character of a stream. Those that find it in the buffer, or room for it,
// are not traced: they cost less than that would. The one that fills or empties the buffer is, with
// all that went before it.

#include <stdio.h>

#include <cstdint>

#include "core/intercept/posix/exported.hpp"
#include "core/intercept/trace/real_calls.hpp"
#include "core/intercept/trace/stream_place.hpp"
#include "core/intercept/trace/traced_call.hpp"

namespace forebay::trace {
namespace {

/// A call for which the buffer does not suffice.
template <typename Call>
[[gnu::always_inline]] inline int traced_character(TracedCall call, FILE* stream, Call&& body) {
  const int fd = descriptor_of(stream);
  if (fd < 0 || !is_traced(fd)) return body();
  prepare();
  const void* caller = __builtin_return_address(0);
  const StreamPlace place = come_to(stream, fd, Asks::where_not_known);
  const bool is_same = place.is_writing == (call == TracedCall::fputc);
  if (!is_same) tell_characters(place, fd, caller);
  const std::uint64_t begin = ticks();
  const int result = body();
  const std::uint64_t end = ticks();
  const std::int64_t moved = (is_same ? place.characters : 0) + (result == EOF ? 0 : 1);
  const std::int64_t told = told_bytes(moved, stream, place);
  leave(stream, fd, place, result != EOF || call == TracedCall::fgetc);
  const std::int64_t offset = is_same ? before_characters(place) : place.offset;
  tell(call, {fd, offset, moved, 0}, begin, end, told, caller);
  return result;
}

template <typename Call>
[[gnu::always_inline]] inline int read_character(FILE* stream, Call&& body) {
  if (stream->_IO_read_ptr < stream->_IO_read_end) [[likely]]
    return body();
  return traced_character(TracedCall::fgetc, stream, body);
}

template <typename Call>
[[gnu::always_inline]] inline int write_character(FILE* stream, Call&& body) {
  if (stream->_IO_write_ptr < stream->_IO_write_end) [[likely]]
    return body();
  return traced_character(TracedCall::fputc, stream, body);
}

[[gnu::always_inline]] inline int read_locked(FILE* stream) {
  return read_character(stream, [=] { return real().fgetc(stream); });
}

[[gnu::always_inline]] inline int read_unlocked(FILE* stream) {
  return read_character(stream, [=] { return real().fgetc_unlocked(stream); });
}

[[gnu::always_inline]] inline int write_locked(int character, FILE* stream) {
  return write_character(stream, [=] { return real().fputc(character, stream); });
}

[[gnu::always_inline]] inline int write_unlocked(int character, FILE* stream) {
  return write_character(stream, [=] { return real().fputc_unlocked(character, stream); });
}

}  // namespace
}  // namespace forebay::trace

using namespace forebay::trace;
using forebay::TracedCall;

// The C library's headers define many of these inline.
#define FOREBAY_TRACED(name, parameters)                        \
  FOREBAY_EXPORTED int traced_##name parameters __asm__(#name); \
  int traced_##name parameters

extern "C" {

// NOLINTBEGIN(bugprone-reserved-identifier): the names are the C library's.
FOREBAY_TRACED(fgetc, (FILE * stream)) { return read_locked(stream); }
FOREBAY_TRACED(getc, (FILE * stream)) { return read_locked(stream); }
FOREBAY_TRACED(_IO_getc, (FILE * stream)) { return read_locked(stream); }
FOREBAY_TRACED(getchar, ()) { return read_locked(stdin); }
FOREBAY_TRACED(fgetc_unlocked, (FILE * stream)) { return read_unlocked(stream); }
FOREBAY_TRACED(getc_unlocked, (FILE * stream)) { return read_unlocked(stream); }
FOREBAY_TRACED(getchar_unlocked, ()) { return read_unlocked(stdin); }

FOREBAY_TRACED(fputc, (int character, FILE* stream)) { return write_locked(character, stream); }
FOREBAY_TRACED(putc, (int character, FILE* stream)) { return write_locked(character, stream); }
FOREBAY_TRACED(_IO_putc, (int character, FILE* stream)) { return write_locked(character, stream); }
FOREBAY_TRACED(putchar, (int character)) { return write_locked(character, stdout); }
FOREBAY_TRACED(fputc_unlocked, (int character, FILE* stream)) {
  return write_unlocked(character, stream);
}
FOREBAY_TRACED(putc_unlocked, (int character, FILE* stream)) {
  return write_unlocked(character, stream);
}
FOREBAY_TRACED(putchar_unlocked, (int character)) { return write_unlocked(character, stdout); }

/// Where it takes back what was read last, that has not been read. Else the stream goes on in
/// another buffer.
FOREBAY_TRACED(ungetc, (int character, FILE* stream)) {
  const auto body = [=] { return real().ungetc(character, stream); };
  const char* next = stream->_IO_read_ptr;
  if (next > stream->_IO_read_base && next[-1] == static_cast<char>(character)) return body();
  const int fd = descriptor_of(stream);
  if (fd < 0 || !is_traced(fd)) return body();
  prepare();
  const StreamPlace place = come_to(stream, fd, Asks::never);
  tell_characters(place, fd, __builtin_return_address(0));
  const int result = body();
  leave(stream, fd, place, false);
  return result;
}

// What is inline comes here where the buffer does not suffice.
FOREBAY_TRACED(__uflow, (FILE * stream)) {
  return traced_character(TracedCall::fgetc, stream, [=] { return real().__uflow(stream); });
}
FOREBAY_TRACED(__overflow, (FILE * stream, int character)) {
  return traced_character(TracedCall::fputc, stream,
                          [=] { return real().__overflow(stream, character); });
}
// NOLINTEND(bugprone-reserved-identifier)

}  // extern "C"
