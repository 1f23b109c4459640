#include "core/engine/trace/spill_file.hpp"

#include <fcntl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>
#define XXH_INLINE_ALL  // No library more in every process.
#include <xxhash.h>

#include <cstdio>
#include <cstring>

#include "core/engine/trace/trace_clock.hpp"
#include "core/storage/file_limit.hpp"

namespace forebay::trace {
namespace {

/// Longer than any name that begin() makes.
constexpr std::size_t room_for_name = 96;
/// Bytes that are kept for what a process says when it ends.
constexpr std::size_t room_for_farewell = 4096;

std::uint64_t checksum_of(const SpillHeader& header, std::span<const std::byte> definitions,
                          std::span<const TraceEvent> events) {
  XXH3_state_t state;
  XXH3_64bits_reset(&state);
  XXH3_64bits_update(&state, &header, sizeof header);
  XXH3_64bits_update(&state, definitions.data(), definitions.size());
  XXH3_64bits_update(&state, events.data(), events.size_bytes());
  return XXH3_64bits_digest(&state);
}

/// For a structure of the kernel's, which does not say what it leaves alone.
template <typename Part>
iovec piece_of(std::span<const Part> part) {
  return {const_cast<Part*>(part.data()), part.size_bytes()};
}

}  // namespace

bool SpillFile::set_directory(const char* path) {
  const std::size_t length = std::strlen(path);
  if (length + room_for_name > path_.size()) return false;
  std::memcpy(path_.data(), path, length);
  directory_length_ = length;
  return true;
}

void SpillFile::begin(const ProcessStart& start) {
  std::snprintf(path_.data() + directory_length_, room_for_name, "/%lld-%lld-%016llx.spill",
                static_cast<long long>(start.process), static_cast<long long>(start.realtime_ns),
                static_cast<unsigned long long>(start.ticks));
  sequence_ = 0;
  length_ = 0;
  lost_ = 0;
}

bool SpillFile::grow(std::size_t length, std::size_t more) {
  const std::uint64_t before = length_.fetch_add(length, std::memory_order_relaxed);
  if (may_make_file(static_cast<Bytes>(before + length + more))) return true;
  length_.fetch_sub(length, std::memory_order_relaxed);
  return false;
}

bool SpillFile::append(Ring& ring, std::span<const std::byte> definitions,
                       std::span<const TraceEvent> events) {
  const TickPair now = tick_pair();
  std::size_t length = sizeof(SpillHeader) + definitions.size() + events.size_bytes();
  bool may_write = grow(length, room_for_farewell);
  if (!may_write && grow(length - events.size_bytes(), 0)) {
    may_write = true;
    ring.lose(events.size());
    length -= events.size_bytes();
    events = {};
  }
  ring.lose(lost_.exchange(0, std::memory_order_relaxed));
  SpillHeader header;
  header.events = static_cast<std::uint32_t>(events.size());
  header.definition_bytes = definitions.size();
  header.thread = ring.thread.load(std::memory_order_relaxed);
  header.sequence = sequence_.fetch_add(1, std::memory_order_relaxed);
  header.ticks = now.ticks;
  header.monotonic_ns = now.monotonic_ns;
  header.lost = ring.lost();
  header.spill_ticks = ring.spill_ticks.load(std::memory_order_relaxed);
  header.checksum = checksum_of(header, definitions, events);
  const std::array<iovec, 3> pieces = {piece_of(std::span<const SpillHeader>(&header, 1)),
                                       piece_of(definitions), piece_of(events)};
  constexpr int how = O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC;
  const auto fd =
      may_write ? static_cast<int>(::syscall(SYS_openat, AT_FDCWD, path_.data(), how, 0600)) : -1;
  bool is_safe = false;
  if (fd >= 0) {
    is_safe = ::syscall(SYS_writev, fd, pieces.data(), pieces.size()) == static_cast<long>(length);
    ::syscall(SYS_close, fd);
  }
  ring.spill_ticks.fetch_add(ticks() - now.ticks, std::memory_order_relaxed);
  return is_safe;
}

}  // namespace forebay::trace
