// Goal: ranges are aligned, apart from each other, and no more than the buffer holds.
// Method: take until it is full, give some back.

#include "core/engine/prefetch/fetch_buffer.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>

#include "core/plan/fetch_piece.hpp"

namespace forebay {
namespace {

TEST(FetchBuffer, RangesAreApartFromEachOtherAndAligned) {
  auto buffer = FetchBuffer::make(5 * MiB + 100);
  ASSERT_TRUE(buffer.has_value());
  EXPECT_EQ(buffer->bytes(), 5 * MiB);
  const Bytes lengths[] = {2 * MiB, 5000, 3 * MiB - 8 * KiB};
  Bytes places[3] = {};
  for (int i = 0; i < 3; ++i) {
    const auto place = buffer->take(lengths[i]);
    ASSERT_TRUE(place.has_value());
    places[i] = *place;
    const auto memory = buffer->at(*place, lengths[i]);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory.data()) % direct_alignment, 0U);
    std::ranges::fill(memory, static_cast<std::byte>(i + 1));
  }
  for (int i = 0; i < 3; ++i) {
    const auto memory = buffer->at(places[i], lengths[i]);
    EXPECT_EQ(std::ranges::count(memory, static_cast<std::byte>(i + 1)), lengths[i]);
  }
  EXPECT_FALSE(buffer->take(1).has_value());
  EXPECT_EQ(buffer->peak_bytes(), 5 * MiB);
}

TEST(FetchBuffer, WhatWasGivenBackIsTakenAgainWhereItFits) {
  auto buffer = FetchBuffer::make(64 * KiB);
  ASSERT_TRUE(buffer.has_value());
  EXPECT_EQ(buffer->take(16 * KiB), 0);
  EXPECT_EQ(buffer->take(16 * KiB), 16 * KiB);
  EXPECT_EQ(buffer->take(16 * KiB), 32 * KiB);
  buffer->give_back(0);
  EXPECT_EQ(buffer->take(20 * KiB), std::nullopt) << "not in one piece";
  EXPECT_EQ(buffer->take(4 * KiB), 0);
  EXPECT_EQ(buffer->take(12 * KiB), 4 * KiB);
  EXPECT_EQ(buffer->peak_bytes(), 48 * KiB);
}

TEST(FetchBuffer, LessThanAUnitIsNoBuffer) {
  EXPECT_EQ(FetchBuffer::make(4 * KiB - 1).error().kind, ErrorKind::no_memory);
}

}  // namespace
}  // namespace forebay
