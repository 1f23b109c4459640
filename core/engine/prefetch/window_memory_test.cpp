// Goal: readers share memory only where enough is left to programs.
// Method: child processes with a /dev/shm of their own, of a size that is told. Needs root.

#include "core/engine/prefetch/window_memory.hpp"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

namespace forebay {
namespace {

enum Outcome { made, not_made, cannot_be_tried };

/// A window of 8 MiB.
int try_in_shared_memory_of(const char* size) {
  const bool has_own = ::geteuid() == 0 && ::unshare(CLONE_NEWNS) == 0 &&
                       ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
                       ::mount("none", "/dev/shm", "tmpfs", 0, size) == 0;
  if (!has_own) return cannot_be_tried;
  WindowMemory memory({.version = {{1, 2}, 64 * MiB, 3, 4}, .plan = 5, .bytes = 8 * MiB});
  return memory.open() ? made : not_made;
}

int in_child(const char* size) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(try_in_shared_memory_of(size));
  int status = 0;
  return child > 0 && ::waitpid(child, &status, 0) == child && WIFEXITED(status)
             ? WEXITSTATUS(status)
             : -1;
}

TEST(WindowMemory, TakesAQuarterOfWhatIsFreeAtMost) {
  const int in_enough = in_child("size=64m");
  if (in_enough == cannot_be_tried) GTEST_SKIP() << "nothing can be mounted here";
  EXPECT_EQ(in_enough, made);
  EXPECT_EQ(in_child("size=32m"), not_made);
}

}  // namespace
}  // namespace forebay
