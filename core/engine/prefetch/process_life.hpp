#pragma once

#include <sys/types.h>

#include <cstdint>

namespace forebay {

/// When a process began, in ticks since the system did (proc(5), field 22): its number may come
/// back as that of another process. 0: there is none, or it has ended and nobody has waited for it
/// yet; process_is_unknown: it cannot be told (no descriptor is left to look it up with, say).
std::uint64_t beginning_of(pid_t process);
constexpr std::uint64_t process_is_unknown = ~std::uint64_t{0};

/// Whether the process that began at `beginning`, as beginning_of() told then, has ended. What
/// cannot be told is no.
bool has_ended(pid_t process, std::uint64_t beginning);

}  // namespace forebay
