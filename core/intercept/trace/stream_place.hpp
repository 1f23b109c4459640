#pragma once

#include <stdio.h>

#include <cstdint>

#include "core/intercept/trace/traced_call.hpp"

// Where streams stand. What moves a byte within a stream's buffer is too short to be traced each
// time, and compilers put it into the program itself. So it is kept where a traced call leaves the
// pointers of the buffer, and looked at before the next: what lies between was moved a character at
// a time. Whoever fills or empties the buffer so is seen (character_calls.cpp). If anything else
// moved the stream, it is asked where it stands.

namespace forebay::trace {

/// A stream before one of its calls.
struct StreamPlace {
  /// As events have it: -1 where the calls before have left it; where it stands, if it had to be
  /// asked; -2 if it cannot tell.
  std::int64_t offset = -1;
  std::int64_t characters = 0;  ///< Bytes moved one by one since the traced call before.
  bool is_writing = false;      ///< Those were written.
  bool is_known = true;         ///< The events and `offset` tell where it stands.
  bool is_alone = true;         ///< No other call by the stream is under way.
  int flags = 0;                ///< The stream's own.
  std::uint64_t around = 0;     ///< The thread's call by a stream that this one is within.
};

/// -1: it has none, as those in memory. errno stays.
int descriptor_of(FILE* stream);

/// It is moved by wide characters, and by no others.
inline bool is_wide(const FILE* stream) { return stream->_mode > 0; }

/// Tells that it is, if it is. errno stays.
void tell_wide(FILE* stream, const void* caller);

/// When a stream is asked where it stands.
enum class Asks : std::uint8_t {
  never,  ///< But where there are characters to tell of.
  where_not_known,
  always,
};

/// Before a call by `stream`, whose descriptor `fd` is traced. leave() follows, unless the thread
/// is cancelled in the call or jumps out of it: that is noticed at its next call by a stream, or as
/// it ends. errno stays.
StreamPlace come_to(FILE* stream, int fd, Asks asks);

/// After it. `is_exact`: what its event tells is all that it moved.
void leave(FILE* stream, int fd, const StreamPlace& place, bool is_exact);

/// A thread ends: the call by a stream that it was cancelled in does, too.
void leave_abandoned();

/// Where it stands, or -1 while another thread is in a call by it, -2 if it cannot tell.
std::int64_t asked(FILE* stream);

/// `fd` is of another stream from now on.
void forget_stream(int fd);
/// All that waited in buffers has been written.
void are_flushed();
/// In a forked child: calls by other threads of the parent's do not end here.
void are_of_this_process();

/// -errno where `stream` failed and had not failed before, if nothing was moved.
std::int64_t told_bytes(std::int64_t bytes, FILE* stream, const StreamPlace& before);

/// Where `characters` begin, as events have it.
std::int64_t before_characters(const StreamPlace& place);

/// Tells of what was moved before a call, which is not in the call's own event.
void tell_characters(const StreamPlace& place, int fd, const void* caller);

/// What the event of a call by a stream tells: bytes.
struct StreamMove {
  std::int64_t length = 0;
  std::int64_t result = 0;
  bool is_exact = true;
};

/// A call that moves a stream; `moved_by` judges its result.
template <typename Call, typename Judge>
[[gnu::always_inline]] inline auto traced_stream(TracedCall call, FILE* stream, Asks asks,
                                                 Call&& body, Judge&& moved_by) {
  const int fd = descriptor_of(stream);
  if (fd < 0 || !is_traced(fd)) return body();
  prepare();
  const void* caller = __builtin_return_address(0);
  const StreamPlace place = come_to(stream, fd, asks);
  tell_characters(place, fd, caller);
  const std::uint64_t begin = ticks();
  const auto result = body();
  const std::uint64_t end = ticks();
  const StreamMove move = moved_by(result, place);
  leave(stream, fd, place, move.is_exact);
  tell(call, {fd, place.offset, move.length, 0}, begin, end, move.result, caller);
  return result;
}

}  // namespace forebay::trace
