#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/engine/trace/trace_clock.hpp"
#include "core/model/trace_event.hpp"

namespace forebay::trace {

/// What libforebay-trace.so is to the back ends of MPI, which are in the process beside it. They
/// find `forebay_trace_door`, a function that returns this, or null if the process is not traced.
struct Door {
  bool counter_is_steady;  ///< ticks() goes by it.
  /// How deep the thread that asks is in calls of MPI-IO; who begins one counts it.
  int& (*mpi_depth)();
  /// Code in this range is that of the back end.
  void (*set_back_end)(std::uintptr_t begin, std::uintptr_t end);
  /// A call and its details.
  void (*add)(const TraceEvent& call, const TraceEvent& details);
  void (*define)(TraceDefinition kind, std::uint64_t key, std::span<const std::byte> first,
                 std::span<const std::byte> second);
  /// Whether the thread should define what `key` stands for, since it did not lately.
  bool (*is_new)(std::uint64_t key);

  /// What events are timed by.
  std::uint64_t ticks() const { return trace::ticks(counter_is_steady); }
};

constexpr const char* door_name = "forebay_trace_door";
using FindDoor = const Door*();

}  // namespace forebay::trace
