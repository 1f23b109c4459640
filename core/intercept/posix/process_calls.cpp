// How a program ends without its exit handlers: at once, for another program, or with its last
// thread; and how it confines itself. A child that shares our memory (vfork) ends nothing.

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <threads.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>
#include <ctime>

#include "core/intercept/posix/endings.hpp"
#include "core/intercept/posix/exec_words.hpp"
#include "core/intercept/posix/exported.hpp"
#include "core/intercept/posix/managed_files.hpp"
#include "core/intercept/posix/real_calls.hpp"

using namespace forebay::posix;

namespace {

/// What the kernel refuses for a while after a thread of ours was waited for, which it counts until
/// it has done with it.
template <typename Call>
int without_threads(bool of_descriptors, Call call) {
  constexpr int most_tries = 100;
  constexpr timespec between_tries{0, 1'000'000};
  const bool were_ended = before_unsharing(of_descriptors);
  const int before = errno;
  int result = call();
  for (int tries = 1; were_ended && result != 0 && errno == EINVAL && tries < most_tries; ++tries) {
    ::nanosleep(&between_tries, nullptr);
    result = call();
  }
  if (result == 0) errno = before;
  return result;
}

}  // namespace

extern "C" {

// NOLINTBEGIN(bugprone-reserved-identifier): the names are the C library's.
FOREBAY_EXPORTED void _exit(int status) {
  before_exit();
  real()._exit(status);
  __builtin_unreachable();
}

FOREBAY_EXPORTED void _Exit(int status) noexcept {
  before_exit();
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
  before_exec();
  const auto call = real().execveat;
  return call != nullptr ? call(directory, path, words, environment, flags)
                         : static_cast<int>(
                               ::syscall(SYS_execveat, directory, path, words, environment, flags));
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

// All commands take four words or less (prctl(2)).
FOREBAY_EXPORTED int prctl(int command, ...) noexcept {
  va_list rest;
  va_start(rest, command);
  const auto one = va_arg(rest, unsigned long);
  const auto two = va_arg(rest, unsigned long);
  const auto three = va_arg(rest, unsigned long);
  const auto four = va_arg(rest, unsigned long);
  va_end(rest);
  const bool is_prepared = command == PR_SET_SECCOMP && before_confinement();
  const int result = real().prctl(command, one, two, three, four);
  if (is_prepared && result != 0) after_no_confinement();
  return result;
}

// Some of what they do, the kernel lets only a process of one thread do.

FOREBAY_EXPORTED int unshare(int flags) noexcept {
  return without_threads((flags & CLONE_FILES) != 0, [=] { return real().unshare(flags); });
}

FOREBAY_EXPORTED int setns(int fd, int kind) noexcept {
  return without_threads(false, [=] { return real().setns(fd, kind); });
}

}  // extern "C"
