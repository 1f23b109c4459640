// Goal: writes are sieved where that is cheaper by far, and not where it merely might be.
// Method: the figures of a page cache and of a server, on both sides of the line between.

#include "core/plan/write_sieving.hpp"

#include <gtest/gtest.h>

namespace forebay {
namespace {

const SievingCost page_cache{expected_cost({}, true), expected_cost({}, false), true};
const StripeLayout stripes{.stripe_size = 64 * KiB, .servers = 4};
const SievingCost server{expected_cost(stripes, true), expected_cost(stripes, false)};

/// `pieces` pieces of `piece` bytes, one in every `stride`.
Cluster every(Bytes stride, Bytes piece, std::int64_t pieces) {
  return {pieces, pieces * piece, (pieces - 1) * stride + piece};
}

TEST(SievingPays, ForPiecesOfAFewBytesInAPageCache) {
  EXPECT_TRUE(sieving_pays(every(16, 8, 32768), page_cache));
  EXPECT_TRUE(sieving_pays(every(64, 8, 8192), page_cache));
  EXPECT_TRUE(sieving_pays(every(1000, 8, 524), page_cache));
  EXPECT_FALSE(sieving_pays(every(4096, 8, 128), page_cache)) << "mostly gaps";
  EXPECT_FALSE(sieving_pays(every(8192, 4096, 64), page_cache)) << "long pieces";
}

TEST(SievingPays, ForMuchLongerPiecesOnAServer) {
  EXPECT_TRUE(sieving_pays(every(128, 64, 4096), server));
  EXPECT_TRUE(sieving_pays(every(8192, 4096, 64), server));
  EXPECT_FALSE(sieving_pays(every(128 * KiB, 4096, 4), server)) << "32 ranks would wait in line";
  EXPECT_FALSE(sieving_pays(every(2 * MiB, MiB, 2), server));
}

TEST(SievingPays, NotForPiecesThatAClientCaches) {
  SievingCost cached = server;
  cached.cached_piece = client_cached_piece;
  EXPECT_TRUE(sieving_pays(every(32 * KiB, 16 * KiB, 16), server));
  EXPECT_FALSE(sieving_pays(every(32 * KiB, 16 * KiB, 16), cached));
  EXPECT_TRUE(sieving_pays(every(8192, 4096, 64), cached)) << "none need hold a whole page";
}

TEST(SievingPays, NotForAPieceOrTwo) {
  EXPECT_FALSE(sieving_pays(every(16, 8, 2), page_cache));
  EXPECT_FALSE(sieving_pays(every(16, 8, 1), page_cache));
  EXPECT_FALSE(sieving_pays({}, page_cache));
}

TEST(SievingPays, NeverWhereThereIsNoGap) {
  EXPECT_FALSE(sieving_pays({1000, 8000, 8000}, server));
}

TEST(MostSievedGap, IsWhatACallIsWorth) {
  EXPECT_EQ(most_sieved_gap(page_cache), 1250);
  EXPECT_EQ(most_sieved_gap(server), 500'000);
  EXPECT_GT(most_sieved_gap({{.call_ns = 1}, {.call_ns = 1}}), 0) << "bytes that cost nothing";
}

}  // namespace
}  // namespace forebay
