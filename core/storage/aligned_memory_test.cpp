// Goal: memory begins where a device may be written from, is kept as long as it suffices, and can
// be handed on.

#include "core/storage/aligned_memory.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <utility>

#include "core/model/direct_io.hpp"

namespace forebay {
namespace {

bool begins_at(std::span<const std::byte> memory, Bytes alignment) {
  return reinterpret_cast<std::uintptr_t>(memory.data()) % static_cast<std::uintptr_t>(alignment) ==
         0;
}

TEST(AlignedMemory, BeginsAtAPageOrALargePage) {
  AlignedMemory memory;
  for (const Bytes length : {Bytes{1}, 5 * KiB, MiB, large_page - 1, large_page, 3 * MiB}) {
    const auto bytes = memory.take(length);
    ASSERT_EQ(static_cast<Bytes>(bytes.size()), length);
    EXPECT_TRUE(begins_at(bytes, length > MiB ? large_page : direct_alignment));
    std::ranges::fill(bytes, std::byte{1});
  }
}

TEST(AlignedMemory, IsKeptWhileItSuffices) {
  AlignedMemory memory;
  const auto* begin = memory.take(MiB).data();
  EXPECT_EQ(memory.take(1).data(), begin);
  AlignedMemory next = std::move(memory);
  EXPECT_EQ(next.take(MiB).data(), begin);
}

}  // namespace
}  // namespace forebay
