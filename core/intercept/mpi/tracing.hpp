#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "core/intercept/trace/door.hpp"

namespace forebay {

namespace detail {
extern constinit const trace::Door* door;
}  // namespace detail

/// What traces this process; null: nothing does.
inline const trace::Door* tracing() { return detail::door; }

/// Looks for it, once, when the back end is bound. `call_names`: of the calls by number.
void find_tracing(std::span<const char* const> call_names);

/// The number of a call; 0 if it has none.
int call_number(std::string_view name);

/// Says which process of the job this is, once MPI is initialised. Later calls do nothing.
void trace_process();

template <typename Value>
std::span<const std::byte> bytes_of(const Value& value) {
  return std::as_bytes(std::span(&value, 1));
}
inline std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

}  // namespace forebay
