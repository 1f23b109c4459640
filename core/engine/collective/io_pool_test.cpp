// Goal: every job that is submitted is carried out, by threads or, where the system gives none, by
// the caller. Method: jobs that count; for the second, a child process that may have no threads.

#include "core/engine/collective/io_pool.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>

#include "core/engine/collective/few_threads_rig.hpp"

namespace forebay {
namespace {

constexpr int jobs = 100;

/// The jobs carried out by the time a pool of so many threads is gone.
int carried_out(int threads) {
  std::atomic<int> done{0};
  {
    IoPool pool(threads);
    for (int i = 0; i < jobs; ++i) pool.submit([&] { ++done; });
  }
  return done;
}

TEST(IoPool, FinishesWhatWasSubmitted) {
  EXPECT_EQ(carried_out(1), jobs);
  EXPECT_EQ(carried_out(4), jobs);
}

TEST(IoPool, WithoutThreadsTheCallerDoesTheWork) {
  const int done = in_child([] {
    allow_threads(0, 1);
    const IoPool pool(4);
    return pool.threads() == 0 ? carried_out(4) : 0;
  });
  if (done == may_not) GTEST_SKIP() << "threads cannot be limited";
  EXPECT_EQ(done, jobs);
}

}  // namespace
}  // namespace forebay
