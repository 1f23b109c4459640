#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string_view>

#include "core/model/trace_event.hpp"

namespace forebay::trace {

/// Descriptors from here on are looked at anew by each call.
constexpr unsigned most_descriptors = 65536;

enum class DescriptorKind : std::uint8_t {
  unknown,
  traced,    ///< A file, a directory or a block device.
  untraced,  ///< A pipe, a socket, a terminal and the like.
};

namespace detail {
extern std::array<std::atomic<DescriptorKind>, most_descriptors> descriptor_kinds;
/// Asks the kernel, and says in the trace what is there.
bool is_found_traced(int descriptor);
}  // namespace detail

/// Whether calls by `descriptor` are traced. errno stays.
inline bool is_traced(int descriptor) {
  const auto index = static_cast<unsigned>(descriptor);
  if (index >= most_descriptors) [[unlikely]]
    return detail::is_found_traced(descriptor);
  const DescriptorKind kind = detail::descriptor_kinds[index].load(std::memory_order_relaxed);
  if (kind == DescriptorKind::unknown) [[unlikely]]
    return detail::is_found_traced(descriptor);
  return kind == DescriptorKind::traced;
}

/// The same of what is known of it, without asking.
inline bool is_known_traced(int descriptor) {
  const auto index = static_cast<unsigned>(descriptor);
  return index < most_descriptors &&
         detail::descriptor_kinds[index].load(std::memory_order_relaxed) == DescriptorKind::traced;
}

/// `descriptor` was opened by the call that `opening` tells of: adds that, and which file it is.
/// errno stays.
void is_new(int descriptor, const TraceEvent& opening);

/// The key of what the kernel calls the file behind `descriptor`, for one that no name was given
/// for. errno stays.
std::uint64_t key_of_file(int descriptor);

/// `copy` is a duplicate of `descriptor` now.
void is_copied(int descriptor, int copy);

/// `descriptor` may be something else from now on.
void is_over(int descriptor);

/// Says what is open in this process, as a trace begins.
void describe_descriptors();

}  // namespace forebay::trace
