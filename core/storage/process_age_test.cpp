// Goal: what was left before this process was started is told from what came since. Method: a child
// is started after its parent, and neither in the future.

#include "core/storage/process_age.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>

namespace forebay {
namespace {

TEST(ProcessAge, IsThatOfTheProcess) {
  const std::int64_t parent = started_jiffies();
  ASSERT_GT(parent, 0);
  const std::int64_t parent_unix_s = started_unix_s();
  // Two clocks are read, and each is rounded.
  EXPECT_LE(parent_unix_s, ::time(nullptr) + 1);
  constexpr std::int64_t a_day = 24 * 3600;
  EXPECT_GT(parent_unix_s, ::time(nullptr) - a_day);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const bool is_later = started_jiffies() >= parent && started_unix_s() + 1 >= parent_unix_s;
    ::_exit(is_later ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace forebay
