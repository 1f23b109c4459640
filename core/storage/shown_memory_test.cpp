// Goal: nothing is held that was taken away, and who takes something away waits for who holds it.
// Method: one thread holds places while others take them away and give others in their stead.

#include "core/storage/shown_memory.hpp"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

namespace forebay {
namespace {

using Place = ShownMemory::Place;

TEST(ShownMemory, IsHeldUntilItIsTakenAway) {
  ShownMemory memory;
  auto first = memory.add(100, 200);
  auto second = memory.add(200, 300);
  ASSERT_TRUE(first && second);
  EXPECT_TRUE(first->hold());
  first->release();
  EXPECT_FALSE(memory.take_away(0, 100));
  EXPECT_TRUE(first->hold()) << "it begins there";
  first->release();
  EXPECT_TRUE(memory.take_away(150, 200));
  EXPECT_FALSE(memory.take_away(150, 200));
  EXPECT_FALSE(first->hold()) << "a part is gone";
  EXPECT_TRUE(second->hold());
  second->release();
}

TEST(ShownMemory, APlaceIsNotThatOfItsSuccessor) {
  ShownMemory memory;
  auto gone = memory.add(100, 200);
  memory.take_away(100, 200);
  auto next = memory.add(100, 200);
  ASSERT_TRUE(gone && next);
  EXPECT_FALSE(gone->hold());
  gone.reset();
  EXPECT_TRUE(next->hold());
  next->release();
}

TEST(ShownMemory, HasRoomForAsManyAsItSays) {
  ShownMemory memory;
  std::vector<Place> places;
  for (std::uintptr_t i = 1; i <= ShownMemory::most; ++i) {
    auto place = memory.add(i * 10, i * 10 + 10);
    ASSERT_TRUE(place);
    places.push_back(std::move(*place));
  }
  EXPECT_FALSE(memory.add(1, 2));
  places.pop_back();
  EXPECT_TRUE(memory.add(1, 2)) << "one has ended";
}

/// `is_there[i]` stands for memory at [i, i + 1), which one thread takes away and gives again.
TEST(ShownMemory, WhoTakesItAwayWaitsForWhoHoldsIt) {
  constexpr std::size_t threads = 3;
  constexpr int enough = 500;
  struct Shared {
    ShownMemory memory;
    std::array<std::atomic<bool>, threads> is_there{};
    std::array<std::mutex, threads> mutexes;
    std::array<std::shared_ptr<Place>, threads> places;  ///< Guarded by mutexes.
    std::atomic<int> holds{0};
    std::atomic<int> wrong{0};
    std::atomic<std::size_t> at_work{threads};
  } shared;
  std::vector<std::thread> takers;
  for (std::size_t i = 0; i < threads; ++i) {
    takers.emplace_back([&shared, i] {
      while (shared.holds < enough) {
        shared.is_there[i] = true;
        auto place = shared.memory.add(i, i + 1);
        if (!place) {
          ++shared.wrong;
          continue;
        }
        {
          const std::lock_guard lock(shared.mutexes[i]);
          shared.places[i] = std::make_shared<Place>(std::move(*place));
        }
        shared.memory.take_away(i, i + 1);
        shared.is_there[i] = false;
      }
      --shared.at_work;
    });
  }
  while (shared.at_work > 0) {
    for (std::size_t i = 0; i < threads; ++i) {
      const auto place = [&] {
        const std::lock_guard lock(shared.mutexes[i]);
        return shared.places[i];
      }();
      if (place == nullptr || !place->hold()) continue;
      ++shared.holds;
      if (!shared.is_there[i]) ++shared.wrong;
      std::this_thread::yield();
      if (!shared.is_there[i]) ++shared.wrong;
      place->release();
    }
  }
  for (std::thread& taker : takers) taker.join();
  EXPECT_EQ(shared.wrong, 0);
}

}  // namespace
}  // namespace forebay
