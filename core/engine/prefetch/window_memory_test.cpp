// Goal: readers share memory only where enough is left to programs.
// Method: child processes with a /dev/shm of their own, of a size that is told. Needs root.

#include "core/engine/prefetch/window_memory.hpp"

#include <gtest/gtest.h>

#include "core/storage/child_rig.hpp"

namespace forebay {
namespace {

enum Outcome { made, not_made };

/// Whether a window of 8 MiB can be made in a child process, or may_not.
int made_where_shared_memory_has(const char* size) {
  return in_child([size]() -> int {
    if (!mount_for_itself("/dev/shm", "tmpfs", size)) return may_not;
    WindowMemory memory({.version = {{1, 2}, 64 * MiB, 3, 4}, .plan = 5, .bytes = 8 * MiB});
    return memory.open() ? made : not_made;
  });
}

TEST(WindowMemory, TakesAQuarterOfWhatIsFreeAtMost) {
  const int in_enough = made_where_shared_memory_has("size=64m");
  if (in_enough == may_not) GTEST_SKIP() << "needs a mount";
  EXPECT_EQ(in_enough, made);
  EXPECT_EQ(made_where_shared_memory_has("size=32m"), not_made);
}

}  // namespace
}  // namespace forebay
