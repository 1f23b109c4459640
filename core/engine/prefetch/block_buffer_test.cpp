// Goal: blocks are aligned, apart from each other, and no more than the budget holds.
// Method: take all, give some back.

#include "core/engine/prefetch/block_buffer.hpp"

#include <gtest/gtest.h>

#include <cstdint>

#include "core/plan/fetch_plan.hpp"

namespace forebay {
namespace {

TEST(BlockBuffer, HoldsWholeBlocksWithinItsBytes) {
  auto buffer = BlockBuffer::make(3 * 8 * KiB + 100, 8 * KiB);
  ASSERT_TRUE(buffer.has_value());
  EXPECT_EQ(buffer->blocks(), 3);
  const auto a = buffer->take();
  const auto b = buffer->take();
  const auto c = buffer->take();
  ASSERT_TRUE(a && b && c);
  EXPECT_FALSE(buffer->take().has_value());
  for (const int index : {*a, *b, *c}) {
    const auto memory = (*buffer)[index];
    EXPECT_EQ(memory.size(), 8U * KiB);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory.data()) % direct_alignment, 0U);
    for (std::byte& byte : memory) byte = static_cast<std::byte>(index + 1);
  }
  for (const int index : {*a, *b, *c}) {
    EXPECT_EQ((*buffer)[index].front(), static_cast<std::byte>(index + 1));
    EXPECT_EQ((*buffer)[index].back(), static_cast<std::byte>(index + 1));
  }
  buffer->give_back(*b);
  EXPECT_EQ(buffer->take(), b);
  EXPECT_EQ(buffer->peak_bytes(), 24 * KiB);
}

TEST(BlockBuffer, LessThanABlockIsNoBuffer) {
  EXPECT_EQ(BlockBuffer::make(4 * KiB, 8 * KiB).error().kind, ErrorKind::no_memory);
}

}  // namespace
}  // namespace forebay
