#include "core/engine/trace/recorder.hpp"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#define XXH_INLINE_ALL  // No library more in every process.
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstdint>
#include <limits>
#include <new>

#include "core/engine/trace/process_start.hpp"
#include "core/engine/trace/spill_file.hpp"

namespace forebay::trace {

namespace detail {
constinit WipedOnFork* process = nullptr;
constinit thread_local Ring* own_ring = nullptr;
constinit bool has_ended = false;
constinit std::uint64_t longest_wait = 0;
}  // namespace detail

namespace {

using detail::own_ring;
using detail::process;

constinit SpillFile file;
constinit AtStart describe_process = nullptr;
constinit AtThreadEnd thread_ends = nullptr;
constinit TickSource source = TickSource::monotonic;
constinit std::uint64_t start_ticks = 0;
constinit std::uint64_t ticks_tried = 0;
constinit std::atomic<Ring*> rings{nullptr};
pthread_key_t end_of_thread{};

class KeptErrno {
 public:
  KeptErrno() : before_(errno) {}
  ~KeptErrno() { errno = before_; }
  KeptErrno(const KeptErrno&) = delete;
  KeptErrno& operator=(const KeptErrno&) = delete;

 private:
  const int before_;
};

void* memory(std::size_t size) {
  // The call of the kernel: the C library's may be somebody's who traces, too.
  // NOLINTNEXTLINE(performance-no-int-to-ptr): what the kernel returns.
  auto* const place = reinterpret_cast<void*>(::syscall(
      SYS_mmap, nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  return place == MAP_FAILED ? nullptr : place;
}

bool spill(Ring& ring, bool by_own_thread) {
  return ring.spill(
      [](Ring& spilled, std::span<const std::byte> definitions,
         std::span<const TraceEvent> events) { return file.append(spilled, definitions, events); },
      by_own_thread);
}

/// The thread that calls it ends.
void give_back(void* ending) {
  const KeptErrno kept;
  auto* ring = static_cast<Ring*>(ending);
  if (thread_ends != nullptr) thread_ends();
  if (process->is_alive.load(std::memory_order_relaxed) == 0) return;
  ring->state = Ring::State::busy;
  detail::make_room(*ring);
  own_ring = nullptr;
  ring->thread.store(0, std::memory_order_release);
}

/// A ring that nobody uses.
Ring* found_ring(std::int64_t thread) {
  for (Ring* ring = rings.load(std::memory_order_acquire); ring != nullptr; ring = ring->next) {
    std::int64_t nobody = 0;
    if (ring->thread.compare_exchange_strong(nobody, thread, std::memory_order_acquire)) {
      ring->reset(thread);
      ring->spill_at = ticks() + detail::longest_wait;
      return ring;
    }
  }
  void* place = memory(sizeof(Ring));
  if (place == nullptr) return nullptr;
  auto* ring = new (place) Ring;
  ring->thread = thread;
  ring->spill_at = ticks() + detail::longest_wait;
  Ring* first = rings.load(std::memory_order_relaxed);
  do {
    ring->next.store(first, std::memory_order_relaxed);
  } while (!rings.compare_exchange_weak(first, ring, std::memory_order_release));
  return ring;
}

void define_calls() {
  struct Call {
    TracedCall id;
    std::string_view name;
  };
  static constexpr Call calls[] = {
#define FOREBAY_TRACED_CALL(name) {TracedCall::name, #name},
#include "core/model/traced_calls.inc"
#undef FOREBAY_TRACED_CALL
  };
  for (const Call& call : calls) {
    define(TraceDefinition::call, static_cast<std::uint64_t>(call.id), bytes_of(call.name));
  }
}

/// In a process without any trace of its own yet. One thread comes here: the only one of a forked
/// child, or the one that loads the library.
void begin_process() {
  const std::uint64_t began = ticks();
  const auto thread = ::syscall(SYS_gettid);
  // Of the parent's threads only this one is here, and what is in its ring is the parent's.
  for (Ring* ring = rings; ring != nullptr; ring = ring->next) {
    ring->reset(ring == own_ring ? thread : 0);
    ring->spill_at = began + detail::longest_wait;
  }
  detail::has_ended = false;
  const ProcessText text(source);
  file.begin(text.start());
  process->is_alive.store(1, std::memory_order_relaxed);
  define(TraceDefinition::process, 0, bytes_of(text.start()), bytes_of(text.words()));
  define_calls();
  if (describe_process != nullptr) describe_process();
  // At once: what other threads spill cannot be read without it.
  if (own_ring != nullptr) detail::make_room(*own_ring);
  start_ticks = ticks() - began;
}

}  // namespace

namespace detail {

Ring* attach(std::uint64_t events) {
  const KeptErrno kept;
  if (process == nullptr) return nullptr;
  if (process->is_alive.load(std::memory_order_relaxed) == 0) begin_process();
  if (own_ring == nullptr) {
    own_ring = found_ring(::syscall(SYS_gettid));
    if (own_ring == nullptr) {
      file.lose(events);
      return nullptr;
    }
    ::pthread_setspecific(end_of_thread, own_ring);
  }
  return own_ring;
}

void make_room(Ring& ring) {
  const KeptErrno kept;
  constexpr int most_tries = 10'000;
  for (int i = 0; i < most_tries && !spill(ring, true); ++i) ::sched_yield();
  ring.spill_at = ticks() + longest_wait;
}

}  // namespace detail

bool start(const char* directory, AtStart at_start, AtThreadEnd at_thread_end) {
  const KeptErrno kept;
  source = find_clock();
  describe_process = at_start;
  thread_ends = at_thread_end;
  if (!file.set_directory(directory)) return false;
  constexpr std::size_t page = 4096;
  void* place = memory(page);
  if (place == nullptr || ::madvise(place, page, MADV_WIPEONFORK) != 0) return false;
  if (::pthread_key_create(&end_of_thread, give_back) != 0) return false;
  detail::longest_wait = ticks_of_a_while();
  process = new (place) detail::WipedOnFork{};
  begin_process();
  return true;
}

namespace {

void spill_rings() {
  const KeptErrno kept;
  for (Ring* ring = rings.load(std::memory_order_acquire); ring != nullptr; ring = ring->next) {
    if (ring->thread.load(std::memory_order_acquire) != 0) spill(*ring, ring == own_ring);
  }
}

bool is_alive() {
  return process != nullptr && process->is_alive.load(std::memory_order_relaxed) != 0;
}

}  // namespace

void before_exec() {
  if (!is_alive() || is_vforked()) return;
  define(TraceDefinition::exec, 0, {});
  spill_rings();
}

void end() {
  if (!is_alive() || is_vforked()) return;
  const ProcessEnd farewell{ticks(), start_ticks, ticks_tried};
  define(TraceDefinition::end, 0, bytes_of(farewell));
  spill_rings();
  detail::has_ended = true;
}

void begin_vfork() {
  detail::attach(0);  // Else the child would make the ring that says whose calls these are.
  if (is_alive() && own_ring != nullptr && own_ring->state == Ring::State::idle) {
    own_ring->state = Ring::State::vforked;
  }
}

void end_vfork() {
  if (is_vforked()) own_ring->state = Ring::State::idle;
}

bool is_vforked() { return own_ring != nullptr && own_ring->state == Ring::State::vforked; }

void set_cost(std::uint64_t ticks_of_calls_tried) { ticks_tried = ticks_of_calls_tried; }

std::uint32_t events_of_this_thread() { return own_ring == nullptr ? 0 : own_ring->events(); }

void take_back(std::uint32_t events) {
  if (own_ring != nullptr) own_ring->take_back(events);
}

void define(TraceDefinition kind, std::uint64_t key, std::span<const std::byte> first,
            std::span<const std::byte> second) {
  Ring* ring = detail::enter(1);
  if (ring == nullptr) return;
  if (!ring->define(kind, key, first, second)) {
    detail::make_room(*ring);
    if (!ring->define(kind, key, first, second)) ring->lose(1);
  }
  if (detail::has_ended) detail::make_room(*ring);
  detail::leave(*ring);
}

bool is_new_key(std::uint64_t key) {
  Ring* ring = own_ring;
  return ring == nullptr || !is_alive() || ring->state != Ring::State::idle ||
         ring->is_new_key(key);
}

std::uint64_t key_of(std::string_view name) {
  const std::uint64_t key = XXH3_64bits(name.data(), name.size());
  if (is_new_key(key)) define(TraceDefinition::name, key, bytes_of(name));
  return key;
}

}  // namespace forebay::trace
