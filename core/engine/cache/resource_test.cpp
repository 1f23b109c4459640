// Goal: a resource never gives more than it has, nobody is kept from his share by another's greed,
// and processes that share its memory are holders like threads are.
// Method: worked examples; many threads that take and give back; a forked process, killed.

#include "core/engine/cache/resource.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <random>
#include <thread>
#include <vector>

namespace forebay {
namespace {

using std::chrono::milliseconds;
constexpr milliseconds long_enough{60'000};  // Nothing waits that long unless it is stuck.

std::unique_ptr<ResourceHolder> join(const std::shared_ptr<Resource>& resource) {
  auto holder = ResourceHolder::join(resource);
  EXPECT_TRUE(holder);
  return std::move(*holder);
}

TEST(Resource, GivesUntilItIsAllTaken) {
  const auto resource = std::make_shared<Resource>("cache.local", 100);
  const auto holder = join(resource);
  EXPECT_TRUE(holder->take(60));
  EXPECT_FALSE(holder->take(41));
  EXPECT_TRUE(holder->take(40));
  EXPECT_EQ(resource->free(), 0);
  holder->give_back(30);
  EXPECT_EQ(resource->free(), 30);
  EXPECT_EQ(holder->held(), 70);
  EXPECT_EQ(resource->amount(), 100);
}

TEST(Resource, GetsBackWhatAHolderHadAtItsEnd) {
  const auto resource = std::make_shared<Resource>("cache.local", 100);
  {
    const auto holder = join(resource);
    ASSERT_TRUE(holder->take(100));
  }
  EXPECT_EQ(resource->free(), 100);
}

TEST(Resource, KeepsAShareForWhoWaitsForIt) {
  const auto resource = std::make_shared<Resource>("cache.local", 100);
  const auto greedy = join(resource);
  const auto modest = join(resource);
  ASSERT_TRUE(greedy->take(60));
  ASSERT_TRUE(greedy->take(40)) << "nobody else wants it";
  EXPECT_FALSE(greedy->wanted_by_others());

  std::atomic<bool> served = false;
  std::thread waiting([&] { served = modest->take(30, long_enough); });
  while (!greedy->wanted_by_others()) std::this_thread::yield();
  greedy->give_back(20);
  EXPECT_FALSE(greedy->take(10)) << "what is free is kept for the one who waits";
  greedy->give_back(10);
  waiting.join();
  EXPECT_TRUE(served);
  EXPECT_EQ(modest->held(), 30);
  EXPECT_FALSE(greedy->wanted_by_others());
}

TEST(Resource, EntitlesEveryHolderToOneTakeHoweverManyThereAre) {
  const auto resource = std::make_shared<Resource>("cache.local", 100);
  const auto first = join(resource);
  std::vector<std::unique_ptr<ResourceHolder>> others;
  others.reserve(9);
  for (int i = 0; i < 9; ++i) others.push_back(join(resource));
  ASSERT_TRUE(first->take(70));
  EXPECT_TRUE(others[0]->take(30)) << "beyond its share of 10, but it has nothing yet";
}

TEST(Resource, StopsWaitingWhenPatienceEnds) {
  const auto resource = std::make_shared<Resource>("cache.local", 10);
  const auto holder = join(resource);
  const auto other = join(resource);
  ASSERT_TRUE(holder->take(10));
  EXPECT_FALSE(other->take(1, milliseconds(5)));
  EXPECT_FALSE(holder->wanted_by_others());
}

TEST(Resource, HasRoomForSoManyHoldersAndNoMore) {
  const auto resource = std::make_shared<Resource>("cache.local", 10);
  std::vector<std::unique_ptr<ResourceHolder>> holders;
  holders.reserve(Resource::most_holders);
  for (int i = 0; i < Resource::most_holders; ++i) holders.push_back(join(resource));
  EXPECT_EQ(ResourceHolder::join(resource).error().kind, ErrorKind::no_space);
  holders.pop_back();
  EXPECT_TRUE(ResourceHolder::join(resource));
}

TEST(Resource, IsNeverOverdrawnByManyThreads) {
  constexpr Bytes amount = 50;
  const auto resource = std::make_shared<Resource>("cache.local", amount);
  std::atomic<Bytes> taken = 0;
  std::atomic<int> grants = 0;
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937 random(t);
      const auto holder = join(resource);
      for (int i = 0; i < 500; ++i) {
        const Bytes wanted = 1 + static_cast<Bytes>(random() % 20);
        if (!holder->take(wanted, long_enough)) continue;
        ++grants;
        EXPECT_LE(taken += wanted, amount);
        taken -= wanted;
        holder->give_back(wanted);
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(grants, 8 * 500);
  EXPECT_EQ(resource->free(), amount);
}

class SharedMemoryOfTwo {
 public:
  SharedMemoryOfTwo()
      : address_(
            ::mmap(nullptr, size(), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)) {}
  ~SharedMemoryOfTwo() { ::munmap(address_, size()); }
  SharedMemoryOfTwo(const SharedMemoryOfTwo&) = delete;
  SharedMemoryOfTwo& operator=(const SharedMemoryOfTwo&) = delete;
  std::span<std::byte> bytes() const { return {static_cast<std::byte*>(address_), size()}; }

 private:
  static std::size_t size() { return static_cast<std::size_t>(Resource::state_bytes()); }
  void* address_;
};

TEST(Resource, IsSharedByProcesses) {
  const SharedMemoryOfTwo memory;
  const auto resource = std::make_shared<Resource>("cache.local", 100, memory.bytes());
  const auto holder = join(resource);
  ASSERT_TRUE(holder->take(80));
  const pid_t child = ::fork();
  if (child == 0) {
    const auto same = std::make_shared<Resource>("cache.local", 1, memory.bytes());
    auto mine = ResourceHolder::join(same);
    const bool served = mine && same->amount() == 100 && (*mine)->take(50, long_enough);
    ::_exit(served ? 0 : 1);  // Without giving back.
  }
  while (!holder->wanted_by_others()) std::this_thread::yield();
  holder->give_back(40);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  EXPECT_EQ(resource->free(), 10) << "who died keeps what it had";
}

TEST(Resource, SurvivesTheDeathOfAProcessThatUsesIt) {
  const SharedMemoryOfTwo memory;
  const auto resource = std::make_shared<Resource>("cache.local", 100, memory.bytes());
  const pid_t child = ::fork();
  if (child == 0) {
    const auto same = std::make_shared<Resource>("cache.local", 100, memory.bytes());
    auto mine = ResourceHolder::join(same);
    while (mine && (*mine)->take(1)) (*mine)->give_back(1);
    ::_exit(1);
  }
  const auto holder = join(resource);
  for (int i = 0; i < 1000; ++i) {
    ASSERT_TRUE(holder->take(1, long_enough));
    holder->give_back(1);
  }
  ::kill(child, SIGKILL);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(holder->take(50, long_enough));
}

}  // namespace
}  // namespace forebay
