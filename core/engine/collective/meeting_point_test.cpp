// Goal: gathers at a meeting point hand every rank everybody's part of the same gather, however far
// ranks drift apart, and a rank that waits lets the rest of the program go on. Method: ranks are
// threads, each with a mapping of its own of the same memory; parts tell whose and which they are.
#include "core/engine/collective/meeting_point.hpp"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "core/engine/collective/shared_memory.hpp"

namespace forebay {
namespace {

class MeetingPoints : public testing::Test {
 protected:
  std::unique_ptr<MeetingPoint> make(int rank, int ranks, std::function<void()> keep_going) {
    auto region = SharedMemory::attach(memory_->name(), MeetingPoint::region_bytes(ranks));
    EXPECT_TRUE(region.has_value());
    return std::make_unique<MeetingPoint>(std::move(*region), rank, ranks, std::move(keep_going));
  }

  void make_memory(int ranks) {
    memory_ = std::move(SharedMemory::create(MeetingPoint::region_bytes(ranks)).value());
  }

  std::unique_ptr<SharedMemory> memory_;
};

TEST_F(MeetingPoints, EveryGatherIsOfOneMoment) {
  constexpr int ranks = 5;
  constexpr std::uint64_t gathers = 2000;
  make_memory(ranks);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([this, rank] {
      const auto meeting = make(rank, ranks, [] {});
      std::minstd_rand random(static_cast<unsigned>(rank + 1));
      std::array<std::uint64_t, MeetingPoint::most_bytes / sizeof(std::uint64_t)> mine{};
      for (std::uint64_t number = 0; number < gathers; ++number) {
        const std::size_t words = number % (mine.size() + 1);
        mine.fill(number * ranks + static_cast<std::uint64_t>(rank));
        std::vector<std::uint64_t> all(words * ranks);
        meeting->gather(std::as_bytes(std::span(mine).first(words)),
                        std::as_writable_bytes(std::span(all)));
        for (std::size_t at = 0; at < all.size(); ++at) {
          ASSERT_EQ(all[at], number * ranks + at / words) << "rank " << rank;
        }
        if (random() % 8 == 0) std::this_thread::yield();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_F(MeetingPoints, WhoWaitsKeepsTheRestGoing) {
  make_memory(2);
  std::atomic<bool> went_on = false;
  std::thread early([&] {
    make(0, 2, [&] {
      went_on = true;
      went_on.notify_all();
    })->gather({}, {});
  });
  went_on.wait(false);  // The other comes only when this one has seen to the rest.
  make(1, 2, [] {})->gather({}, {});
  early.join();
}

TEST_F(MeetingPoints, EachRankHasABell) {
  make_memory(2);
  const auto one = make(0, 2, [] {});
  const auto other = make(1, 2, [] {});
  one->bell(1).ring();
  EXPECT_EQ(other->bell(1).rings.load(), 1U);
  EXPECT_EQ(other->bell(0).rings.load(), 0U);
}

}  // namespace
}  // namespace forebay
