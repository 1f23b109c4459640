#pragma once

#include <cstdint>

#include "core/model/trace_event.hpp"

namespace forebay::trace {

namespace detail {
/// How deep the thread is in calls of MPI-IO.
extern constinit thread_local int mpi_depth;
/// Where the code of Forebay's back end is, once there is one.
extern constinit std::uintptr_t back_end_begin;
extern constinit std::uintptr_t back_end_end;
}  // namespace detail

/// Whose call returns to `caller`.
inline TracedWithin within(const void* caller) {
  const auto address = reinterpret_cast<std::uintptr_t>(caller);
  if (address >= detail::back_end_begin && address < detail::back_end_end) {
    return TracedWithin::forebay;
  }
  return detail::mpi_depth > 0 ? TracedWithin::mpi : TracedWithin::program;
}

}  // namespace forebay::trace
