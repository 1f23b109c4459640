// How the trace of a process begins and ends.

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdarg>
#include <cstdint>
#include <cstdlib>
#include <limits>

#include "core/intercept/posix/exec_words.hpp"
#include "core/intercept/posix/exported.hpp"
#include "core/intercept/trace/real_calls.hpp"
#include "core/intercept/trace/stream_place.hpp"
#include "core/intercept/trace/traced_call.hpp"

namespace forebay::trace {
namespace {

/// What tracing a call takes, by doing it without a call: of a few rounds the shortest, for the
/// first meets memory that was never touched. Nothing of it is kept.
void try_cost() {
  constexpr int rounds = 3;
  const std::uint32_t before = events_of_this_thread();
  std::uint64_t shortest = std::numeric_limits<std::uint64_t>::max();
  for (int round = 0; round < rounds; ++round) {
    const std::uint64_t began = ticks();
    for (int i = 0; i < calls_tried; ++i) {
      traced(TracedCall::none, {0, i, 1, 0}, [] { return 0; });
    }
    shortest = std::min(shortest, ticks() - began);
    take_back(before);
  }
  set_cost(shortest);
}

[[gnu::constructor(102)]] void load() {
  const char* directory = std::getenv("FOREBAY_TRACE_DIR");
  if (directory == nullptr || directory[0] != '/') return;
  const auto describe = [] {
    are_of_this_process();
    describe_descriptors();
  };
  if (start(directory, describe, leave_abandoned)) try_cost();
}

[[gnu::destructor]] void unload() { end(); }

}  // namespace
}  // namespace forebay::trace

using namespace forebay::trace;
using forebay::posix::with_words;

extern "C" {

// Of vfork_*.S.
void forebay_before_vfork() noexcept { begin_vfork(); }
void forebay_after_vfork() noexcept { end_vfork(); }

// NOLINTBEGIN(bugprone-reserved-identifier): the names are the C library's.
FOREBAY_EXPORTED void _exit(int status) {
  end();
  real()._exit(status);
  __builtin_unreachable();
}

FOREBAY_EXPORTED void _Exit(int status) noexcept {
  end();
  real()._Exit(status);
  __builtin_unreachable();
}
// NOLINTEND(bugprone-reserved-identifier)

FOREBAY_EXPORTED int execve(const char* path, char* const words[],
                            char* const environment[]) noexcept {
  before_exec();
  return real().execve(path, words, environment);
}

FOREBAY_EXPORTED int execv(const char* path, char* const words[]) noexcept {
  before_exec();
  return real().execv(path, words);
}

FOREBAY_EXPORTED int execvp(const char* file, char* const words[]) noexcept {
  before_exec();
  return real().execvp(file, words);
}

FOREBAY_EXPORTED int execvpe(const char* file, char* const words[],
                             char* const environment[]) noexcept {
  before_exec();
  return real().execvpe(file, words, environment);
}

FOREBAY_EXPORTED int fexecve(int fd, char* const words[], char* const environment[]) noexcept {
  before_exec();
  return real().fexecve(fd, words, environment);
}

FOREBAY_EXPORTED int execveat(int directory, const char* path, char* const words[],
                              char* const environment[], int flags) noexcept {
  if (real().execveat == nullptr) {  // Before glibc 2.34.
    errno = ENOSYS;
    return -1;
  }
  before_exec();
  return real().execveat(directory, path, words, environment, flags);
}

FOREBAY_EXPORTED int execl(const char* path, const char* first, ...) noexcept {
  va_list rest;
  va_start(rest, first);
  const int failed = with_words(first, &rest, [=](char** words) { return execv(path, words); });
  va_end(rest);
  return failed;
}

FOREBAY_EXPORTED int execlp(const char* file, const char* first, ...) noexcept {
  va_list rest;
  va_start(rest, first);
  const int failed = with_words(first, &rest, [=](char** words) { return execvp(file, words); });
  va_end(rest);
  return failed;
}

FOREBAY_EXPORTED int execle(const char* path, const char* first, ...) noexcept {
  va_list rest;
  va_start(rest, first);
  const int failed = with_words(first, &rest, [&](char** words) {
    auto* const* environment = va_arg(rest, char* const*);
    return execve(path, words, environment);
  });
  va_end(rest);
  return failed;
}

}  // extern "C"
