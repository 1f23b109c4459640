// Goal: readers share memory only where enough is left to programs.
// Method: child processes with a /dev/shm of their own, of a size that is told. Needs root.

#include "core/engine/prefetch/window_memory.hpp"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

namespace forebay {
namespace {

constexpr int cannot_be_tried = 77;

/// In a child process: 0 if a window of 8 MiB was made there, 1 if not.
int made_in_shared_memory_of(const char* size) {
  const bool has_own = ::geteuid() == 0 && ::unshare(CLONE_NEWNS) == 0 &&
                       ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
                       ::mount("none", "/dev/shm", "tmpfs", 0, size) == 0;
  if (!has_own) return cannot_be_tried;
  WindowMemory memory({.version = {{1, 2}, 64 * MiB, 3, 4}, .plan = 5, .bytes = 8 * MiB});
  return memory.open() ? 0 : 1;
}

/// Whether the child says so, or cannot try.
auto says(int expected) {
  return [expected](int status) {
    return WIFEXITED(status) &&
           (WEXITSTATUS(status) == expected || WEXITSTATUS(status) == cannot_be_tried);
  };
}

TEST(WindowMemoryDeathTest, TakesAQuarterOfWhatIsFreeAtMost) {
  EXPECT_EXIT(::_exit(made_in_shared_memory_of("size=64m")), says(0), "");
  EXPECT_EXIT(::_exit(made_in_shared_memory_of("size=32m")), says(1), "");
}

}  // namespace
}  // namespace forebay
