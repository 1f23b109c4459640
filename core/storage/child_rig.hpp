#pragma once

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

// What tests share that try something in a child process.

namespace forebay {

/// What a child says that is not allowed what it needs.
constexpr int may_not = 77;

/// What a child makes of `work`: its exit status, or -1 if a signal ended it.
template <typename Work>
int in_child(Work work) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(work());
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/// Mounts a file system of `kind` at `place`, for this process and its children alone, which only
/// root may.
inline bool mount_for_itself(const char* place, const char* kind, const char* options = nullptr) {
  return ::unshare(CLONE_NEWNS) == 0 && ::mount("", "/", "", MS_REC | MS_PRIVATE, "") == 0 &&
         ::mount("", place, kind, 0, options) == 0;
}

}  // namespace forebay
