#pragma once

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "core/engine/trace/recorder.hpp"
#include "core/engine/trace/trace_clock.hpp"
#include "core/intercept/trace/traced_descriptors.hpp"
#include "core/intercept/trace/within.hpp"
#include "core/model/trace_event.hpp"

// The way of every call that is traced. In these functions the return address is that of the hook
// they are called in: they are always inlined.

namespace forebay::trace {

/// What an event tells beside its call and its times.
struct Told {
  std::int32_t descriptor = -1;
  std::int64_t offset = -1;
  std::int64_t length = 0;
  std::uint8_t argument = 0;
};

/// -errno where it failed.
template <typename Result>
std::int64_t told_result(Result result) {
  if constexpr (std::is_pointer_v<Result>) {
    return result == nullptr ? -errno : 0;
  } else {
    return result < 0 ? -errno : static_cast<std::int64_t>(result);
  }
}

[[gnu::always_inline]] inline TraceEvent event_of(TracedCall call, const Told& told,
                                                  std::uint64_t begin, std::uint64_t end,
                                                  std::int64_t result, const void* caller) {
  return {.begin = begin,
          .duration = end - begin,
          .offset = told.offset,
          .length = told.length,
          .result = result,
          .descriptor = told.descriptor,
          .call = static_cast<std::uint16_t>(call),
          .within = static_cast<std::uint8_t>(within(caller)),
          .argument = told.argument};
}

[[gnu::always_inline]] inline void tell(TracedCall call, const Told& told, std::uint64_t begin,
                                        std::uint64_t end, std::int64_t result,
                                        const void* caller) {
  add(event_of(call, told, begin, end, result, caller));
}

/// Any call of a traced process.
template <typename Call>
[[gnu::always_inline]] inline auto traced(TracedCall call, const Told& told, Call&& body) {
  prepare();
  const std::uint64_t begin = ticks();
  const auto result = body();
  tell(call, told, begin, ticks(), told_result(result), __builtin_return_address(0));
  return result;
}

/// One by a descriptor.
template <typename Call>
[[gnu::always_inline]] inline auto traced_by(TracedCall call, const Told& told, Call&& body) {
  if (!is_traced(told.descriptor)) return body();
  return traced(call, told, body);
}

/// One of which it is not known what files it is of.
template <typename Call>
[[gnu::always_inline]] inline auto traced_of_any(TracedCall call, const Told& told, Call&& body) {
  if (!is_on()) return body();
  return traced(call, told, body);
}

/// One of a name beside `directory`; `flags` are those of an opening.
template <typename Call>
[[gnu::always_inline]] inline auto traced_name(TracedCall call, int directory, const char* name,
                                               std::int64_t flags, Call&& body) {
  if (!is_on() || name == nullptr) return body();
  const auto key = static_cast<std::int64_t>(key_of({name, std::strlen(name)}));
  return traced(call, {directory, flags, key, 0}, body);
}

/// One that opens a file beside `directory`; `descriptor_of` finds the descriptor in its result, -1
/// where it failed, and `key_of_name` the name, which some calls make themselves.
template <typename Open, typename DescriptorOf, typename KeyOfName>
[[gnu::always_inline]] inline auto traced_opening_of(TracedCall call, int directory,
                                                     std::int64_t flags, Open&& open,
                                                     DescriptorOf&& descriptor_of,
                                                     KeyOfName&& key_of_name) {
  prepare();
  const std::uint64_t begin = ticks();
  const auto opened = open();
  const std::uint64_t end = ticks();
  const int fd = descriptor_of(opened);
  const int result = fd < 0 ? -errno : fd;
  const auto key = static_cast<std::int64_t>(key_of_name(fd));
  const TraceEvent event =
      event_of(call, {directory, flags, key, 0}, begin, end, result, __builtin_return_address(0));
  if (fd >= 0) {
    is_new(fd, event);
  } else {
    add(event);
  }
  return opened;
}

/// One that opens the file of a name, which is there when the call has returned.
template <typename Open, typename DescriptorOf>
[[gnu::always_inline]] inline auto traced_opening(TracedCall call, int directory, const char* name,
                                                  std::int64_t flags, Open&& open,
                                                  DescriptorOf&& descriptor_of) {
  if (!is_on() || name == nullptr) return open();
  return traced_opening_of(call, directory, flags, open, descriptor_of,
                           [=](int) { return key_of({name, std::strlen(name)}); });
}

}  // namespace forebay::trace
