// Goal: what a flush mark said once it goes on saying, also where the next one is being written.
// Method: a mark in memory; a place damaged as a crash in the middle of a write would; the power
// lost.

#include "core/engine/cache/flush_mark.hpp"

#include <gtest/gtest.h>

#include "core/engine/cache/memory_log_store.hpp"

namespace forebay {
namespace {

constexpr std::size_t place_bytes = 512;

/// The mark of a log whose file `flushed` was overwritten in the middle of one of its places.
Result<std::uint64_t> read_damaged(const MemoryLog& log, std::size_t place) {
  auto files = log.files();
  files.at("flushed").at(place * place_bytes + 30) ^= std::byte{1};
  MemoryLog damaged(files);
  return FlushMark::read(*damaged.open());
}

TEST(FlushMark, SaysTheHighestThatWasPut) {
  MemoryLog log;
  const auto store = log.open();
  EXPECT_EQ(FlushMark::read(*store).value(), 0U);
  auto mark = FlushMark::open(*store);
  ASSERT_TRUE(mark);
  EXPECT_EQ(FlushMark::read(*store).value(), 0U);
  for (const std::uint64_t sequence : {1U, 5U, 9U}) {
    ASSERT_TRUE(mark->put(sequence));
    EXPECT_EQ(FlushMark::read(*store).value(), sequence);
  }
}

TEST(FlushMark, KeepsTheLastOneWhileTheNextIsWritten) {
  for (const int before : {1, 2, 3}) {
    MemoryLog log;
    const auto store = log.open();
    {
      auto mark = FlushMark::open(*store);
      for (int i = 1; i <= before; ++i) ASSERT_TRUE(mark->put(static_cast<std::uint64_t>(i)));
    }
    // Opened again, as a recovery does.
    ASSERT_TRUE(FlushMark::open(*store)->put(10));
    const auto newest = static_cast<std::size_t>(before % 2);
    EXPECT_EQ(read_damaged(log, newest).value(), static_cast<std::uint64_t>(before));
    EXPECT_EQ(read_damaged(log, 1 - newest).value(), 10U);
  }
}

TEST(FlushMark, IsDurableWhenItWasPut) {
  MemoryLog log;
  const auto store = log.open();
  ASSERT_TRUE(FlushMark::open(*store)->put(7));
  std::mt19937_64 random(1);  // NOLINT(bugprone-random-generator-seed)
  const auto left = log.after_crash(CrashKind::all_lost, random);
  EXPECT_EQ(FlushMark::read(*left->open()).value(), 7U);
}

TEST(FlushMark, OfAnotherVersionIsRefused) {
  MemoryLog log;
  const auto store = log.open();
  ASSERT_TRUE(FlushMark::open(*store)->put(7));
  auto files = log.files();
  files.at("flushed").at(8) = std::byte{2};
  MemoryLog newer(files);
  const auto opened = newer.open();
  EXPECT_EQ(FlushMark::read(*opened).error().kind, ErrorKind::unsupported);
  EXPECT_EQ(FlushMark::open(*opened).error().kind, ErrorKind::unsupported);
}

}  // namespace
}  // namespace forebay
