#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "core/model/trace_event.hpp"

namespace forebay::trace {

/// What one thread has traced and not yet spilled. Its thread alone adds; whoever ends the process
/// may spill it beside that. Lives in memory of its own, is used again by other threads, and is
/// never freed.
class Ring {
 public:
  static constexpr std::size_t most_events = 4096;
  static constexpr std::size_t most_definition_bytes = std::size_t{48} * 1024;

  /// By its thread. Whether there was room.
  bool add(const TraceEvent& event) {
    const std::uint32_t count = events_.load(std::memory_order_relaxed);
    if (count == most_events) return false;
    records_[count] = event;
    events_.store(count + 1, std::memory_order_release);
    return true;
  }
  bool define(TraceDefinition kind, std::uint64_t key, std::span<const std::byte> first,
              std::span<const std::byte> second);

  /// By its thread: whether `key` was not defined lately, and counts as defined from now on.
  bool is_new_key(std::uint64_t key) {
    std::uint64_t& known = keys_[key % keys_.size()];
    if (known == key) return false;
    known = key;
    return true;
  }

  std::uint32_t events() const { return events_.load(std::memory_order_relaxed); }
  std::uint32_t definition_bytes() const {
    return definition_bytes_.load(std::memory_order_relaxed);
  }
  void lose(std::uint64_t count) { lost_.fetch_add(count, std::memory_order_relaxed); }
  std::uint64_t lost() const { return lost_.load(std::memory_order_relaxed); }

  /// Hands what was not yet spilled to `write`, definitions and events, which answers whether it is
  /// safe now; if it is not, the events are lost. By its own thread there is room for events again
  /// then. False, and nothing happened: another thread is at it.
  template <typename Write>
  bool spill(Write&& write, bool by_own_thread);

  /// By its thread, before anything was spilled: what was added after the first `count` is gone.
  void take_back(std::uint32_t count) { events_.store(count, std::memory_order_relaxed); }

  /// Without its thread's knowledge: after a fork, in the child.
  void reset(std::int64_t thread);

  std::atomic<Ring*> next{nullptr};     ///< Of all rings.
  std::atomic<std::int64_t> thread{0};  ///< Whose it is; 0: nobody's.
  /// Of its thread.
  enum class State : std::uint8_t {
    idle,
    busy,     ///< It is adding to it: a signal handler must not.
    vforked,  ///< A child is in its memory.
  };
  State state = State::idle;
  std::uint64_t spill_at = 0;                 ///< Ticks: a thread that makes few calls spills then.
  std::atomic<std::uint64_t> spill_ticks{0};  ///< What spilling took.

 private:
  std::atomic<bool> is_spilling_{false};
  std::atomic<std::uint32_t> events_{0};
  std::atomic<std::uint32_t> definition_bytes_{0};
  std::atomic<std::uint64_t> lost_{0};
  std::uint32_t spilled_events_ = 0;            ///< Guarded by is_spilling_.
  std::uint32_t spilled_definition_bytes_ = 0;  ///< Likewise.
  // Not written to by the constructor: fresh memory is all zero, and there when it is used.
  std::array<std::uint64_t, 256> keys_;
  std::array<std::byte, most_definition_bytes> definitions_;
  std::array<TraceEvent, most_events> records_;
};

template <typename Write>
bool Ring::spill(Write&& write, bool by_own_thread) {
  if (is_spilling_.exchange(true, std::memory_order_acquire)) return false;
  // Definitions before the events that refer to them.
  const std::uint32_t events = events_.load(std::memory_order_acquire);
  const std::uint32_t bytes = definition_bytes_.load(std::memory_order_acquire);
  if (events > spilled_events_ || bytes > spilled_definition_bytes_) {
    const auto definitions =
        std::span<const std::byte>(definitions_)
            .subspan(spilled_definition_bytes_, bytes - spilled_definition_bytes_);
    const auto records =
        std::span<const TraceEvent>(records_).subspan(spilled_events_, events - spilled_events_);
    const bool is_safe = write(*this, definitions, records);
    if (!is_safe) lose(records.size());
    // What other events refer to is tried again with the next ones.
    if (is_safe) spilled_definition_bytes_ = bytes;
  }
  spilled_events_ = events;
  if (by_own_thread) {
    spilled_events_ = 0;
    events_.store(0, std::memory_order_relaxed);
    if (spilled_definition_bytes_ == bytes) {
      spilled_definition_bytes_ = 0;
      definition_bytes_.store(0, std::memory_order_relaxed);
    }
  }
  is_spilling_.store(false, std::memory_order_release);
  return true;
}

}  // namespace forebay::trace
