// Goal: what is compressed expands to what it was, from any pieces; what does not shrink, or is not
// worth it, goes as it is; and anything else is refused.
// Method: blocks that shrink and blocks that do not, on ways whose speed is told.

#include "core/engine/compression/adaptive_compressor.hpp"

#include <gtest/gtest.h>

#include "core/model/noise.hpp"

namespace forebay {
namespace {

using Content = std::vector<std::byte>;

Content shrinking(std::size_t length) {
  Content content(length);
  for (std::size_t i = 0; i < length; ++i) content[i] = static_cast<std::byte>(i / 100);
  return content;
}

iovec piece_of(Content& content, std::size_t from, std::size_t length) {
  return {content.data() + from, length};
}

TEST(AdaptiveCompressor, ExpandsToWhatWentIn) {
  Content plain = shrinking(100'000);
  const std::vector<std::vector<iovec>> cuts = {
      {piece_of(plain, 0, 100'000)},
      {piece_of(plain, 0, 1), piece_of(plain, 1, 0), piece_of(plain, 1, 70'000),
       piece_of(plain, 70'001, 29'999)}};
  for (const auto& pieces : cuts) {
    AdaptiveCompressor compressor(Toggle::enable);
    Content storage;
    const auto small = compressor.encode(pieces, storage);
    ASSERT_FALSE(small.empty());
    EXPECT_LT(small.size(), plain.size() / 10);
    Content back(plain.size());
    ASSERT_TRUE(expand(small, back));
    EXPECT_EQ(back, plain);
    Content longer(plain.size() + 1);
    EXPECT_FALSE(expand(small, longer));
    Content shorter(plain.size() - 1);
    EXPECT_FALSE(expand(small, shorter));
    EXPECT_FALSE(expand(small.first(small.size() / 2), back));
  }
}

TEST(AdaptiveCompressor, LeavesWhatDoesNotShrink) {
  Content plain = noise(100'000, 7);
  AdaptiveCompressor compressor(Toggle::enable);
  Content storage;
  const iovec piece = piece_of(plain, 0, plain.size());
  EXPECT_TRUE(compressor.encode({&piece, 1}, storage).empty());
}

TEST(AdaptiveCompressor, CompressesOnASlowWayAlone) {
  Content plain = shrinking(256 * 1024);
  const iovec piece = piece_of(plain, 0, plain.size());
  Content storage;
  AdaptiveCompressor slow(Toggle::automatic);
  EXPECT_TRUE(slow.encode({&piece, 1}, storage).empty()) << "nothing is known of the way yet";
  slow.passed(1 * MiB, std::chrono::seconds(10));
  EXPECT_FALSE(slow.encode({&piece, 1}, storage).empty());
  EXPECT_TRUE(slow.on());

  AdaptiveCompressor fast(Toggle::automatic);
  fast.passed(1 * GiB, std::chrono::nanoseconds(1));
  EXPECT_TRUE(fast.encode({&piece, 1}, storage).empty());
  EXPECT_FALSE(fast.on());

  AdaptiveCompressor never(Toggle::disable);
  never.passed(1 * MiB, std::chrono::seconds(10));
  EXPECT_TRUE(never.encode({&piece, 1}, storage).empty());
}

}  // namespace
}  // namespace forebay
