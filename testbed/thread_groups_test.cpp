// Goal: requests of all threads of a process count as one client. Method: ask for threads of this
// process, one of which ends, with time as an argument.

#include "testbed/thread_groups.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <thread>

namespace forebay::testbed {
namespace {

using namespace std::chrono_literals;

TEST(ThreadGroups, FindsTheProcessOfAThreadAndRemembersIt) {
  ThreadGroups groups;
  EXPECT_EQ(groups.process_of(::getpid(), 0s), ::getpid());
  pid_t other = 0;
  std::thread([&] {
    other = ::gettid();
    EXPECT_EQ(groups.process_of(other, 0s), ::getpid());
  }).join();
  EXPECT_NE(other, ::getpid());
  EXPECT_EQ(groups.process_of(other, 500ms), ::getpid()) << "ended, but remembered";
}

TEST(ThreadGroups, TakesAnUnknownThreadForAProcess) {
  ThreadGroups groups;
  EXPECT_EQ(groups.process_of(0, 0s), 0);
  EXPECT_EQ(groups.process_of(-5, 0s), -5);
}

}  // namespace
}  // namespace forebay::testbed
