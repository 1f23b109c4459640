#include "core/engine/trace/process_start.hpp"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <span>

#include "core/engine/trace/trace_clock.hpp"
#include "core/storage/process_age.hpp"

namespace forebay::trace {
namespace {

/// As launchers tell it.
std::int32_t rank_told() {
  for (const char* name :
       {"PMI_RANK", "PMIX_RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID", "PALS_RANKID"}) {
    const char* text = std::getenv(name);
    std::int32_t rank = -1;
    if (text != nullptr && std::from_chars(text, text + std::strlen(text), rank).ptr != text) {
      return rank;
    }
  }
  return -1;
}

std::string_view working_directory(std::span<char> into) {
  const long length = ::syscall(SYS_getcwd, into.data(), into.size());
  return length > 0 ? std::string_view(into.data()) : std::string_view();
}

std::string_view executable(std::span<char> into) {
  const long length =
      ::syscall(SYS_readlinkat, AT_FDCWD, "/proc/self/exe", into.data(), into.size());
  return {into.data(), static_cast<std::size_t>(std::max(length, 0L))};
}

}  // namespace

ProcessText::ProcessText(TickSource source) {
  const TickPair now = tick_pair();
  start_.process = ::syscall(SYS_getpid);
  start_.parent = ::syscall(SYS_getppid);
  start_.started_jiffies = started_jiffies();
  start_.ticks = now.ticks;
  start_.monotonic_ns = now.monotonic_ns;
  start_.realtime_ns = clock_ns(CLOCK_REALTIME) - (clock_ns(CLOCK_MONOTONIC) - now.monotonic_ns);
  start_.tick_source = static_cast<std::uint32_t>(source);
  start_.rank = rank_told();
  utsname host{};
  ::uname(&host);
  add(host.nodename);
  std::array<char, PATH_MAX> path{};
  add(executable(path));
  add(working_directory(path));
}

void ProcessText::add(std::string_view word) {
  std::copy(word.begin(), word.end(), words_.begin() + static_cast<std::ptrdiff_t>(length_));
  length_ += word.size();
  words_[length_++] = '\0';
}

}  // namespace forebay::trace
