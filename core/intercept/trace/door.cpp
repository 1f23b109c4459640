#include "core/intercept/trace/door.hpp"

#include "core/engine/trace/recorder.hpp"
#include "core/engine/trace/trace_clock.hpp"
#include "core/intercept/posix/exported.hpp"
#include "core/intercept/trace/within.hpp"

namespace forebay::trace {
namespace {

constinit Door door = {
    .counter_is_steady = false,
    .mpi_depth = []() -> int& { return detail::mpi_depth; },
    .set_back_end =
        [](std::uintptr_t begin, std::uintptr_t end) {
          detail::back_end_begin = begin;
          detail::back_end_end = end;
        },
    .add = [](const TraceEvent& call, const TraceEvent& details) { trace::add(call, details); },
    .define = define,
    .is_new = is_new_key,
};

}  // namespace

extern "C" FOREBAY_EXPORTED const Door* forebay_trace_door() noexcept {
  if (!is_on()) return nullptr;
  door.counter_is_steady = detail::counter_is_steady;
  return &door;
}

}  // namespace forebay::trace
