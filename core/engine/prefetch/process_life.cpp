#include "core/engine/prefetch/process_life.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "core/storage/descriptor.hpp"
#include "core/storage/process_space.hpp"

namespace forebay {

/// Not by a stream, whose memory is from the program's heap: this may be in a call of its signal
/// handler (docs/decisions/039-reading-ahead-has-its-own-heap.md).
std::uint64_t beginning_of(pid_t process) {
  std::array<char, 64> path{};
  std::snprintf(path.data(), path.size(), "/proc/%d/stat", process);
  const Descriptor file(::open(path.data(), O_RDONLY | O_CLOEXEC));
  std::array<char, 1024> text{};  // More than 52 numbers and a name of 64 bytes.
  const ssize_t length = file.valid() ? ::read(file.get(), text.data(), text.size() - 1) : -1;
  if (length < 0) return errno == ENOENT || errno == ESRCH ? 0 : process_is_unknown;
  // The name, field 2, may hold anything; it ends with the last parenthesis.
  const char* at = std::strrchr(text.data(), ')');
  constexpr int name_field = 2, state_field = 3, threads_field = 20, beginning_field = 22;
  bool is_dead = false;
  for (int field = name_field; field < beginning_field && at != nullptr;) {
    at = std::strchr(at, ' ');
    if (at == nullptr) break;
    ++at;
    ++field;
    // Nobody has waited for it yet; or its first thread has ended before others.
    if (field == state_field) is_dead = *at == 'Z' || *at == 'X';
    if (field == threads_field && is_dead) is_dead = std::strtol(at, nullptr, 10) <= 1;
  }
  return at == nullptr || is_dead ? 0 : std::strtoull(at, nullptr, 10);
}

bool has_ended(pid_t process, std::uint64_t beginning) {
  const std::uint64_t now = beginning_of(process);
  if (now == 0) return true;
  return now != process_is_unknown && beginning != process_is_unknown && now != beginning;
}

std::optional<std::uint64_t> space_of_known_life() {
  std::array<char, 16> shown{};
  if (::readlink("/proc/self", shown.data(), shown.size() - 1) < 0) return std::nullopt;
  const std::uint64_t space = process_space();
  if (space == 0 || std::strtol(shown.data(), nullptr, 10) != ::getpid()) return std::nullopt;
  return space;
}

}  // namespace forebay
