// Goal: a log of any length has few segments, and little of what it was given is not needed.
// Method: segments are taken one after the other, from a store in memory that says what they took.

#include "core/engine/cache/segment_pool.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/engine/cache/forwarding_log_store.hpp"
#include "core/engine/cache/memory_log_store.hpp"

namespace forebay {
namespace {

constexpr Bytes first = 4 * KiB;
constexpr Bytes largest = 256 * KiB;

class ZeroingStore final : public ForwardingLogStore {
 public:
  ZeroingStore(std::unique_ptr<LogStore> inner, bool zeroes)
      : ForwardingLogStore(std::move(inner)), zeroes_(zeroes) {}
  Result<LogFile> create(const std::string& name, Bytes size) override {
    auto file = ForwardingLogStore::create(name, size);
    if (file) file->zeroed = zeroes_;
    return file;
  }

 private:
  const bool zeroes_;
};

/// The sizes of segments, bytes, that a log takes until it has `total` bytes, of a capacity that it
/// shares with so many others.
std::vector<Bytes> sizes_of(Bytes total, bool zeroes, int others = 0) {
  const auto capacity = std::make_shared<Resource>("cache.local", 2 * total);
  std::vector<std::unique_ptr<ResourceHolder>> holders;
  for (int i = 0; i < others; ++i) holders.push_back(*ResourceHolder::join(capacity));
  MemoryLog log;
  ZeroingStore store(log.open(), zeroes);
  SegmentPool pool(store, {first, largest}, false, *ResourceHolder::join(capacity), nullptr);
  std::vector<Bytes> sizes;
  for (Bytes taken = 0; taken < total; taken += sizes.back()) {
    const auto blank = pool.take();
    if (!blank || !*blank) break;
    sizes.push_back((*blank)->bytes);
  }
  return sizes;
}

TEST(SegmentPool, GrowsWithTheLogToAThirdOfItOrATwelfthWhereStorageIsZeroed) {
  for (const bool zeroes : {false, true}) {
    const Bytes part = zeroes ? 12 : 3;
    const std::vector<Bytes> sizes = sizes_of(4 * MiB, zeroes);
    Bytes before = 0;
    for (const Bytes size : sizes) {
      EXPECT_LE(size, std::max(before / part, first)) << "behind " << before;
      EXPECT_LE(size, largest);
      EXPECT_GE(size, std::min(before / part / 2, largest)) << "behind " << before;
      before += size;
    }
    EXPECT_GE(before, 4 * MiB) << "no take failed";
  }
}

TEST(SegmentPool, MakesFewForALogOfSixtyFourTimesTheFirst) {
  EXPECT_EQ(sizes_of(64 * first, false).size(), 16U);
  EXPECT_EQ(sizes_of(64 * first, true).size(), 40U);
}

TEST(SegmentPool, LeavesALogSeveralSegmentsOfItsShare) {
  const Bytes total = 4 * MiB;
  const std::vector<Bytes> sizes = sizes_of(total, false, 7);
  EXPECT_EQ(std::ranges::max(sizes), 2 * total / 8 / 8);
}

TEST(SegmentPool, HasNotManyForALogThatHasWhatIsOthersAsWell) {
  EXPECT_LE(sizes_of(16 * MiB, false, 500).size(), 400U) << "by its share it would be 2048";
}

TEST(SegmentPool, GivesNothingBeyondTheCapacity) {
  MemoryLog log;
  const auto store = log.open();
  SegmentPool pool(*store, {first, largest}, false,
                   *ResourceHolder::join(std::make_shared<Resource>("cache.local", 2 * first)),
                   nullptr);
  for (const bool there : {true, true, false}) {
    const auto taken = pool.take();
    ASSERT_TRUE(taken);
    EXPECT_EQ(taken->has_value(), there);
  }
}

}  // namespace
}  // namespace forebay
