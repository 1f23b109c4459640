#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>

namespace forebay {

/// When a process began, in ticks since the system did (proc(5), field 22): its number may come
/// back as that of another process. 0: there is none, or it has ended and nobody has waited for it
/// yet; process_is_unknown: it cannot be told (no descriptor is left to look it up with, say).
std::uint64_t beginning_of(pid_t process);
constexpr std::uint64_t process_is_unknown = ~std::uint64_t{0};

/// Whether the process that began at `beginning`, as beginning_of() told then, has ended. What
/// cannot be told is no.
bool has_ended(pid_t process, std::uint64_t beginning);

/// The space of process numbers (process_space.hpp) in which others can ask all that of this
/// process. None: /proc shows this process by no number, or by another one than it has itself.
std::optional<std::uint64_t> space_of_known_life();

}  // namespace forebay
