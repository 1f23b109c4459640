#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "core/engine/trace/ring.hpp"
#include "core/engine/trace/trace_clock.hpp"
#include "core/model/trace_event.hpp"

/// What a process traces. It may be used inside any call of any library, in signal handlers and in
/// the children of forks: nothing here allocates from the heap, waits for a lock, or calls a
/// function of the C library that moves file bytes; errno stays.
namespace forebay::trace {

/// Called in each process that begins to trace, when events can be added: describes what was open
/// before. A forked child begins with its first call.
using AtStart = void (*)();
/// Called in each thread that has a ring, as it ends or is cancelled.
using AtThreadEnd = void (*)();

/// Traces this process into a file of its own in `directory`, an absolute path. False: the path is
/// too long, or there is no memory.
bool start(const char* directory, AtStart at_start, AtThreadEnd at_thread_end);

/// What is in the rings is spilled, and a farewell left. What comes after it is spilled at once.
void end();

/// What is in the rings is spilled: this process may become another program.
void before_exec();

/// Around a vfork: until it has become another program or ended, the child is in this thread's
/// memory and would speak in its name. Nothing is traced then.
void begin_vfork();
void end_vfork();
bool is_vforked();

/// What tracing so many calls took, tried out, for the farewell.
constexpr int calls_tried = 256;
void set_cost(std::uint64_t ticks_of_calls_tried);
/// Takes back what the calling thread has added since it had `events` events.
std::uint32_t events_of_this_thread();
void take_back(std::uint32_t events);

namespace detail {

/// In memory that is all zero in a forked child, by whatever call it was forked.
struct WipedOnFork {
  std::atomic<std::uint32_t> is_alive;
};
extern constinit WipedOnFork* process;
extern constinit thread_local Ring* own_ring;
extern constinit bool has_ended;
extern constinit std::uint64_t longest_wait;  ///< Ticks.

/// The calling thread's ring; null: there is no memory for one, and `events` are counted as lost.
Ring* attach(std::uint64_t events);
void make_room(Ring& ring);

/// Null: nothing can be added now, and `events` are counted as lost, but in a vforked child, whose
/// calls are not traced.
inline Ring* enter(std::uint64_t events) {
  Ring* ring = own_ring;
  if (ring == nullptr || process->is_alive.load(std::memory_order_relaxed) == 0) [[unlikely]]
    ring = attach(events);
  if (ring == nullptr) return nullptr;
  if (ring->state != Ring::State::idle) [[unlikely]] {
    if (ring->state == Ring::State::busy) ring->lose(events);  // A signal handler interrupted it.
    return nullptr;
  }
  ring->state = Ring::State::busy;
  std::atomic_signal_fence(std::memory_order_seq_cst);
  return ring;
}

inline void leave(Ring& ring) {
  std::atomic_signal_fence(std::memory_order_seq_cst);
  ring.state = Ring::State::idle;
}

inline void put(Ring& ring, const TraceEvent& event) {
  if (!ring.add(event)) ring.lose(1);
}

}  // namespace detail

/// The calling thread has a ring, if there is memory for one: its end will be seen.
inline void see_end_of_thread() {
  if (detail::own_ring == nullptr) [[unlikely]]
    detail::attach(0);
}

/// Whether this process is traced.
inline bool is_on() { return detail::process != nullptr; }

/// Before a call of which an event will tell: a forked child says first what it has from its
/// parent.
inline void prepare() {
  if (detail::process->is_alive.load(std::memory_order_relaxed) == 0) [[unlikely]]
    detail::attach(0);
}

/// Several follow each other, whatever interrupts the thread, and are kept or lost together.
template <typename... Events>
void add(const TraceEvent& first, const Events&... rest) {
  constexpr std::size_t count = 1 + sizeof...(rest);
  Ring* ring = detail::enter(count);
  if (ring == nullptr) return;
  if (ring->events() + count > Ring::most_events || first.begin > ring->spill_at ||
      detail::has_ended) [[unlikely]] {
    detail::make_room(*ring);
  }
  detail::put(*ring, first);
  (detail::put(*ring, rest), ...);
  if (detail::has_ended) [[unlikely]]
    detail::make_room(*ring);
  detail::leave(*ring);
}

/// `first` and `second` follow each other. What is larger than a ring has room for is left out.
void define(TraceDefinition kind, std::uint64_t key, std::span<const std::byte> first,
            std::span<const std::byte> second = {});

/// Whether what `key` stands for should be defined by this thread, since it did not lately.
bool is_new_key(std::uint64_t key);

/// The key by which events speak of a name; its definition is there then.
std::uint64_t key_of(std::string_view name);

template <typename Value>
std::span<const std::byte> bytes_of(const Value& value) {
  return std::as_bytes(std::span(&value, 1));
}
inline std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

}  // namespace forebay::trace
