// Goal: a position is told only where it follows from the call before, and never one that calls at
// the same time may have moved.
// Method: calls one after the other, calls that overlap in each order of their ends, then threads
// that share a pointer which only moves on, so that a position that is told wrongly is behind it.

#include "core/intercept/mpi/traced_position.hpp"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <thread>

namespace forebay {
namespace {

constexpr std::int64_t unknown = TracedPosition::unknown;

TEST(TracedPosition, follows_from_the_call_before) {
  for (const bool calls_overlap : {true, false}) {
    TracedPosition position(calls_overlap);
    EXPECT_EQ(position.begin(), unknown);
    position.end(10);
    EXPECT_EQ(position.begin(), 10);
    position.end(unknown);
    EXPECT_EQ(position.begin(), unknown);
    position.end(30);
    EXPECT_EQ(position.begin(), 30);
  }
}

TEST(TracedPosition, of_calls_that_overlap_nobody_knows_the_last) {
  TracedPosition position(true);
  position.begin();
  position.end(10);
  EXPECT_EQ(position.begin(), 10);
  EXPECT_EQ(position.begin(), unknown);
  position.end(20);
  EXPECT_EQ(position.begin(), unknown);  // It overlaps with the one that is left.
  position.end(30);
  position.end(40);
  EXPECT_EQ(position.begin(), unknown);
  position.end(50);
  EXPECT_EQ(position.begin(), 50);
}

TEST(TracedPosition, of_one_call_within_another_neither_says_the_last) {
  TracedPosition position(true);
  position.begin();
  position.begin();
  position.end(5);
  position.end(10);
  EXPECT_EQ(position.begin(), unknown);
  position.end(20);
  EXPECT_EQ(position.begin(), 20);
}

TEST(TracedPosition, is_never_that_of_another_moment) {
  TracedPosition position(true);
  std::mutex pointer_mutex;
  std::int64_t pointer = 0;  // As the MPI has it.
  std::atomic<int> wrong{0};
  const auto calls = [&] {
    for (int i = 0; i < 20'000; ++i) {
      std::int64_t least = 0;
      {
        const std::lock_guard lock(pointer_mutex);
        least = pointer;
      }
      const std::int64_t told = position.begin();
      std::int64_t before = 0;
      {
        const std::lock_guard lock(pointer_mutex);
        before = pointer++;
      }
      // Another call may have begun since: then this one was told a place that was true, and
      // moved the pointer from a later one. It is never told one that was left before it began.
      if (told != unknown && told < least) ++wrong;
      position.end(before + 1);
    }
  };
  std::array<std::thread, 4> threads;
  for (auto& thread : threads) thread = std::thread(calls);
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  // Alone again, the last call says where it is.
  position.begin();
  position.end(++pointer);
  const std::int64_t last = position.begin();
  EXPECT_EQ(last, pointer);
}

}  // namespace
}  // namespace forebay
