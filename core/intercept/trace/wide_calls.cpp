// Calls by wide characters. What they move in bytes is told by nothing that does not convert it
// once more, so they are not traced: of each stream it is told that it is moved by such.

#include <stdio.h>
#include <wchar.h>

#include <cstdarg>
#include <cstddef>
#include <cstdint>

#include "core/intercept/posix/exported.hpp"
#include "core/intercept/trace/real_calls.hpp"
#include "core/intercept/trace/stream_place.hpp"
#include "core/intercept/trace/traced_call.hpp"

namespace forebay::trace {
namespace {

/// A call that may be the first by wide characters of a stream.
template <typename Call>
[[gnu::always_inline]] inline auto wide(FILE* stream, Call&& body) {
  const bool was_wide = is_wide(stream);
  const auto result = body();
  if (!was_wide) [[unlikely]]
    tell_wide(stream, __builtin_return_address(0));
  return result;
}

}  // namespace
}  // namespace forebay::trace

using namespace forebay::trace;

// The C library's headers define some of these inline, and have others for what is called so.
#define FOREBAY_WIDE(result, name, parameters, stream, call)     \
  FOREBAY_EXPORTED result wide_##name parameters __asm__(#name); \
  result wide_##name parameters {                                \
    return wide(stream, [&] { return real().call; });            \
  }

// With arguments behind `last`, which `call` finds in `arguments`.
#define FOREBAY_WIDE_LIST(name, parameters, last, stream, call)   \
  FOREBAY_EXPORTED int wide_##name parameters __asm__(#name);     \
  int wide_##name parameters {                                    \
    va_list arguments;                                            \
    va_start(arguments, last);                                    \
    const int result = wide(stream, [&] { return real().call; }); \
    va_end(arguments);                                            \
    return result;                                                \
  }

extern "C" {

// NOLINTBEGIN(bugprone-reserved-identifier): the names are the C library's.
FOREBAY_WIDE(int, fwide, (FILE * stream, int mode), stream, fwide(stream, mode))

FOREBAY_WIDE(wint_t, fgetwc, (FILE * stream), stream, fgetwc(stream))
FOREBAY_WIDE(wint_t, getwc, (FILE * stream), stream, fgetwc(stream))
FOREBAY_WIDE(wint_t, getwchar, (), stdin, fgetwc(stdin))
FOREBAY_WIDE(wint_t, fgetwc_unlocked, (FILE * stream), stream, fgetwc_unlocked(stream))
FOREBAY_WIDE(wint_t, getwc_unlocked, (FILE * stream), stream, fgetwc_unlocked(stream))
FOREBAY_WIDE(wint_t, getwchar_unlocked, (), stdin, fgetwc_unlocked(stdin))
FOREBAY_WIDE(wint_t, ungetwc, (wint_t character, FILE* stream), stream, ungetwc(character, stream))
FOREBAY_WIDE(wchar_t*, fgetws, (wchar_t * text, int room, FILE* stream), stream,
             fgetws(text, room, stream))
FOREBAY_WIDE(wchar_t*, fgetws_unlocked, (wchar_t * text, int room, FILE* stream), stream,
             fgetws_unlocked(text, room, stream))
FOREBAY_WIDE(wchar_t*, __fgetws_chk, (wchar_t * text, size_t size, int room, FILE* stream), stream,
             __fgetws_chk(text, size, room, stream))
FOREBAY_WIDE(wchar_t*, __fgetws_unlocked_chk, (wchar_t * text, size_t size, int room, FILE* stream),
             stream, __fgetws_unlocked_chk(text, size, room, stream))

FOREBAY_WIDE(wint_t, fputwc, (wchar_t character, FILE* stream), stream, fputwc(character, stream))
FOREBAY_WIDE(wint_t, putwc, (wchar_t character, FILE* stream), stream, fputwc(character, stream))
FOREBAY_WIDE(wint_t, putwchar, (wchar_t character), stdout, fputwc(character, stdout))
FOREBAY_WIDE(wint_t, fputwc_unlocked, (wchar_t character, FILE* stream), stream,
             fputwc_unlocked(character, stream))
FOREBAY_WIDE(wint_t, putwc_unlocked, (wchar_t character, FILE* stream), stream,
             fputwc_unlocked(character, stream))
FOREBAY_WIDE(wint_t, putwchar_unlocked, (wchar_t character), stdout,
             fputwc_unlocked(character, stdout))
FOREBAY_WIDE(int, fputws, (const wchar_t* text, FILE* stream), stream, fputws(text, stream))
FOREBAY_WIDE(int, fputws_unlocked, (const wchar_t* text, FILE* stream), stream,
             fputws_unlocked(text, stream))

FOREBAY_WIDE(int, vfwprintf, (FILE * stream, const wchar_t* format, va_list arguments), stream,
             vfwprintf(stream, format, arguments))
FOREBAY_WIDE_LIST(fwprintf, (FILE * stream, const wchar_t* format, ...), format, stream,
                  vfwprintf(stream, format, arguments))
FOREBAY_WIDE(int, vwprintf, (const wchar_t* format, va_list arguments), stdout,
             vfwprintf(stdout, format, arguments))
FOREBAY_WIDE_LIST(wprintf, (const wchar_t* format, ...), format, stdout,
                  vfwprintf(stdout, format, arguments))
FOREBAY_WIDE(int, __vfwprintf_chk,
             (FILE * stream, int flag, const wchar_t* format, va_list arguments), stream,
             __vfwprintf_chk(stream, flag, format, arguments))
FOREBAY_WIDE_LIST(__fwprintf_chk, (FILE * stream, int flag, const wchar_t* format, ...), format,
                  stream, __vfwprintf_chk(stream, flag, format, arguments))
FOREBAY_WIDE(int, __vwprintf_chk, (int flag, const wchar_t* format, va_list arguments), stdout,
             __vfwprintf_chk(stdout, flag, format, arguments))
FOREBAY_WIDE_LIST(__wprintf_chk, (int flag, const wchar_t* format, ...), format, stdout,
                  __vfwprintf_chk(stdout, flag, format, arguments))

// The functions of one standard of C for formatted input, all by its `vfwscanf`.
#define FOREBAY_WIDE_SCANS(prefix)                                                                \
  FOREBAY_WIDE(int, prefix##vfwscanf, (FILE * stream, const wchar_t* format, va_list arguments),  \
               stream, prefix##vfwscanf(stream, format, arguments))                               \
  FOREBAY_WIDE_LIST(prefix##fwscanf, (FILE * stream, const wchar_t* format, ...), format, stream, \
                    prefix##vfwscanf(stream, format, arguments))                                  \
  FOREBAY_WIDE(int, prefix##vwscanf, (const wchar_t* format, va_list arguments), stdin,           \
               prefix##vfwscanf(stdin, format, arguments))                                        \
  FOREBAY_WIDE_LIST(prefix##wscanf, (const wchar_t* format, ...), format, stdin,                  \
                    prefix##vfwscanf(stdin, format, arguments))

FOREBAY_WIDE_SCANS()
FOREBAY_WIDE_SCANS(__isoc99_)
FOREBAY_WIDE_SCANS(__isoc23_)
// NOLINTEND(bugprone-reserved-identifier)

}  // extern "C"
