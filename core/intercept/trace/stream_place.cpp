#include "core/intercept/trace/stream_place.hpp"

#include <array>
#include <atomic>
#include <cerrno>

namespace forebay::trace {
namespace {

constexpr std::int64_t at_position = -1;
constexpr std::int64_t not_known = -2;

// Of each descriptor's stream one word: where its pointer was left, or 0 where that is not known;
// whether it has moved by more or less than its events tell; and above that how many calls are
// under way, and whether several were at a time. Each of these leaves the pointer where nobody
// knows what the others moved.
constexpr std::uint64_t pointer_bits = (std::uint64_t{1} << 48) - 1;
constexpr std::uint64_t inexact = std::uint64_t{1} << 53;
constexpr std::uint64_t flushed = std::uint64_t{1} << 54;
constexpr std::uint64_t overlapped = std::uint64_t{1} << 55;
constexpr std::uint64_t one_call = std::uint64_t{1} << 56;

std::array<std::atomic<std::uint64_t>, most_descriptors> left_at{};

// The thread's call by a stream that is under way, or 0: where on the stack it began, and its
// descriptor below that. Nobody leaves a call that is cancelled or jumped out of (siglongjmp).
constexpr unsigned descriptor_bits = 16;
static_assert(most_descriptors == 1U << descriptor_bits);
constinit thread_local std::uint64_t under_way = 0;
std::atomic<int> highest_used = -1;

/// "Always write at the end." [glibc, libio.h]
constexpr int is_appending = 0x1000;

bool has_unwritten(const FILE* stream) { return stream->_IO_write_ptr > stream->_IO_write_base; }

std::uint64_t as_number(const char* pointer) {
  return reinterpret_cast<std::uintptr_t>(pointer) & pointer_bits;
}

/// What moves with each byte.
std::uint64_t reached(const FILE* stream) {
  return as_number(has_unwritten(stream) ? stream->_IO_write_ptr : stream->_IO_read_ptr);
}

/// What moves a stream without a buffer and is not traced cannot be seen by its pointers.
bool is_buffered(const FILE* stream) { return stream->_IO_buf_end - stream->_IO_buf_base > 1; }

/// Whether what moved since the stream was left tells by its pointer.
bool is_followed(FILE* stream, std::uint64_t left, StreamPlace& place) {
  if (left == 0 || is_wide(stream)) return false;
  place.is_writing = has_unwritten(stream);
  const std::uint64_t base =
      as_number(place.is_writing ? stream->_IO_write_base : stream->_IO_read_base);
  const bool is_flushed = (left & flushed) != 0 && place.is_writing;
  const std::uint64_t from = is_flushed ? base : left & pointer_bits;
  const std::uint64_t now = reached(stream);
  if (from != now && (from < base || from > now)) return false;
  place.characters = static_cast<std::int64_t>(now - from);
  place.is_known = (left & inexact) == 0 && !is_flushed;
  return true;
}

void leave_abandoned_call(std::uint64_t call) {
  auto& left = left_at[call % most_descriptors];
  std::uint64_t now = left.load(std::memory_order_relaxed);
  std::uint64_t next = 0;
  do {  // What it has moved is not known.
    if (now < one_call) return;
    next = now < 2 * one_call ? 0 : (now - one_call) | overlapped;
  } while (!left.compare_exchange_weak(now, next, std::memory_order_relaxed));
}

/// The caller's call by the stream of `fd` begins. Returns the one around it: that began further up
/// on the stack, else it was abandoned.
[[gnu::always_inline]] inline std::uint64_t begin_call(int fd) {
  const auto place = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
  const std::uint64_t call = (std::uint64_t{place} << descriptor_bits) | static_cast<unsigned>(fd);
  std::uint64_t around = under_way;
  if (around != 0 && around >> descriptor_bits <= call >> descriptor_bits) [[unlikely]] {
    leave_abandoned_call(around);
    around = 0;
  }
  under_way = call;
  return around;
}

}  // namespace

int descriptor_of(FILE* stream) {
  const int before = errno;
  const int fd = stream == nullptr ? -1 : ::fileno(stream);
  errno = before;
  return fd;
}

std::int64_t asked(FILE* stream) {
  // To tell where appended bytes will go, it would move the descriptor.
  const bool moves = (stream->_flags & is_appending) != 0 && has_unwritten(stream);
  if (moves || is_wide(stream)) return not_known;
  if (::ftrylockfile(stream) != 0) return at_position;
  const int before = errno;
  const off_t offset = ::ftello(stream);
  errno = before;
  ::funlockfile(stream);
  return offset < 0 ? not_known : offset;
}

StreamPlace come_to(FILE* stream, int fd, Asks asks) {
  StreamPlace place;
  place.flags = stream->_flags;
  if (static_cast<unsigned>(fd) >= most_descriptors) {
    if (asks != Asks::never) place.offset = asked(stream);
    return place;
  }
  see_end_of_thread();
  place.around = begin_call(fd);
  if (fd > highest_used.load(std::memory_order_relaxed)) {
    highest_used.store(fd, std::memory_order_relaxed);
  }
  auto& left = left_at[static_cast<unsigned>(fd)];
  const std::uint64_t before = left.fetch_add(one_call, std::memory_order_acquire);
  if (before >= one_call) {
    // Before the pointer is moved, at which the other one may be looking.
    left.fetch_or(overlapped, std::memory_order_acquire);
    place.is_known = place.is_alone = false;
    return place;
  }
  const bool is_seen = (before & overlapped) == 0 && is_followed(stream, before, place);
  // Who has come meanwhile may have moved the pointer, and tells of that himself.
  std::atomic_thread_fence(std::memory_order_acquire);
  if ((left.load(std::memory_order_relaxed) & overlapped) != 0) {
    place.characters = 0;
    place.is_known = place.is_alone = false;
    return place;
  }
  place.is_known = place.is_known && is_seen;
  const bool has_to_ask = !place.is_known && (asks != Asks::never || place.characters > 0);
  if (has_to_ask || asks == Asks::always) {
    place.offset = asked(stream);
    place.is_known = place.offset >= 0 || (place.is_known && place.offset == at_position);
  }
  return place;
}

void leave(FILE* stream, int fd, const StreamPlace& place, bool is_exact) {
  if (static_cast<unsigned>(fd) >= most_descriptors) return;
  under_way = place.around;
  const bool is_known = is_exact && place.is_known && is_buffered(stream);
  const std::uint64_t pointer = is_wide(stream) ? 0 : reached(stream) | (is_known ? 0 : inexact);
  auto& left = left_at[static_cast<unsigned>(fd)];
  std::uint64_t now = left.load(std::memory_order_relaxed);
  std::uint64_t next = 0;
  do {
    if (now < 2 * one_call) {  // The last one.
      next = place.is_alone && (now & overlapped) == 0 && now >= one_call ? pointer : 0;
    } else {
      next = (now - one_call) | overlapped;
    }
  } while (!left.compare_exchange_weak(now, next, std::memory_order_relaxed));
}

void tell_wide(FILE* stream, const void* caller) {
  const int fd = is_wide(stream) ? descriptor_of(stream) : -1;
  if (fd < 0 || !is_traced(fd)) return;
  prepare();
  const std::uint64_t now = ticks();
  tell(TracedCall::fwide, {.descriptor = fd}, now, now, 0, caller);
}

void leave_abandoned() {
  if (under_way != 0) leave_abandoned_call(under_way);
  under_way = 0;
}

void forget_stream(int fd) {
  if (static_cast<unsigned>(fd) < most_descriptors) {
    left_at[static_cast<unsigned>(fd)].store(0, std::memory_order_relaxed);
  }
}

void are_flushed() {
  for (int fd = 0; fd <= highest_used.load(std::memory_order_relaxed); ++fd) {
    auto& left = left_at[static_cast<unsigned>(fd)];
    if (left.load(std::memory_order_relaxed) != 0) {
      left.fetch_or(flushed, std::memory_order_relaxed);
    }
  }
}

void are_of_this_process() {
  for (int fd = 0; fd <= highest_used.load(std::memory_order_relaxed); ++fd) {
    if (left_at[static_cast<unsigned>(fd)].load(std::memory_order_relaxed) >= one_call) {
      forget_stream(fd);
    }
  }
}

std::int64_t told_bytes(std::int64_t bytes, FILE* stream, const StreamPlace& before) {
  const bool has_failed = ::ferror_unlocked(stream) != 0;
  const bool had_failed = (before.flags & _IO_ERR_SEEN) != 0;
  return bytes == 0 && has_failed && !had_failed ? -errno : bytes;
}

std::int64_t before_characters(const StreamPlace& place) {
  return place.offset < 0 ? place.offset : place.offset - place.characters;
}

void tell_characters(const StreamPlace& place, int fd, const void* caller) {
  if (place.characters == 0) return;
  const std::uint64_t now = ticks();
  tell(place.is_writing ? TracedCall::fputc : TracedCall::fgetc,
       {fd, before_characters(place), place.characters, 0}, now, now, place.characters, caller);
}

}  // namespace forebay::trace
