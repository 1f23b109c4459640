// Goal: what ranks write one behind the other stays with them, through domains that are fitted to
// it; where domains cannot fit, they are left alone. Method: bytes are counted, piece by piece,
// that are in a domain of the rank which writes them; the worked example of the header.

#include "core/plan/fitted_domains.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace forebay {
namespace {

constexpr FileDomains stripes{.unit = 64 * KiB, .aggregators = 8, .units_per_window = 4};

/// Part r begins at first + r * step.
std::vector<RankPart> pieces(int ranks, Bytes first, Bytes step, Bytes length) {
  std::vector<RankPart> parts;
  for (int r = 0; r < ranks; ++r) {
    parts.push_back({{StridedTree::contiguous(1), first + r * step, 1}, 0, length});
  }
  return parts;
}

/// The part of all bytes that are served by the rank which writes them.
double kept(const std::vector<RankPart>& parts, const FileDomains& domains) {
  const auto ranks = static_cast<int>(parts.size());
  const std::vector<int> serving = fitted_ranks(domains.aggregators, ranks);
  Bytes bytes = 0;
  Bytes total = 0;
  for (int r = 0; r < ranks; ++r) {
    const Extent extent = parts[static_cast<std::size_t>(r)].hull();
    for (Bytes at = extent.offset; at < extent.end(); at += KiB) {
      const auto owner = static_cast<std::size_t>(domains.aggregator_of(at));
      if (serving[owner] == r) bytes += KiB;
      total += KiB;
    }
  }
  return static_cast<double>(bytes) / static_cast<double>(total);
}

TEST(FittedDomains, KeepTheWorkedExampleWithItsRanks) {
  const auto parts = pieces(8, 6 * KiB, 128 * KiB, 128 * KiB);
  const auto fitted = fitted_domains(parts, stripes, MiB);
  ASSERT_TRUE(fitted);
  EXPECT_EQ(fitted->unit, 128 * KiB);
  EXPECT_EQ(fitted->window_bytes(), stripes.window_bytes());
  EXPECT_NEAR(kept(parts, *fitted), 0.95, 0.01);
  EXPECT_NEAR(kept(parts, stripes), 0.125, 0.01);
}

TEST(FittedDomains, LeaveRoomBetweenPieces) {
  const auto parts = pieces(8, 4 * KiB, 512 * KiB, 128 * KiB);
  const auto fitted = fitted_domains(parts, stripes, MiB);
  ASSERT_TRUE(fitted);
  EXPECT_EQ(fitted->unit, 512 * KiB);
  EXPECT_EQ(fitted->units_per_window, 1) << "windows hold one unit at least";
  EXPECT_EQ(kept(parts, *fitted), 1);
}

TEST(FittedDomains, GiveFewAggregatorsNeighbours) {
  FileDomains few = stripes;
  few.aggregators = 4;
  const auto fitted = fitted_domains(pieces(8, 0, 128 * KiB, 128 * KiB), few, MiB);
  ASSERT_TRUE(fitted);
  EXPECT_EQ(fitted->unit, 256 * KiB);
  EXPECT_EQ(fitted_ranks(4, 8), (std::vector{0, 2, 4, 6}));
}

TEST(FittedDomains, AreLeftAloneWhereNothingFits) {
  const auto fits = [](const std::vector<RankPart>& parts, Bytes most_unit = MiB) {
    return fitted_domains(parts, stripes, most_unit).has_value();
  };
  EXPECT_TRUE(fits(pieces(8, 0, 128 * KiB, 128 * KiB)));
  EXPECT_FALSE(fits(pieces(8, 0, 128 * KiB, 128 * KiB), 100 * KiB)) << "the unit is too long";
  EXPECT_FALSE(fits(pieces(8, 64 * KiB, 128 * KiB, 128 * KiB))) << "half a unit off";
  EXPECT_FALSE(fits(pieces(8, 0, 80 * KiB, 80 * KiB))) << "stripes drift away from parts";
  EXPECT_FALSE(fits(pieces(12, 0, 128 * KiB, 128 * KiB))) << "aggregators do not divide ranks";
  EXPECT_FALSE(fits(pieces(8, 0, 0, 128 * KiB))) << "all write the same";
  EXPECT_FALSE(fits(pieces(8, 0, 128 * KiB, 0))) << "nobody writes anything";
  EXPECT_FALSE(fits(pieces(1, 0, 128 * KiB, 128 * KiB))) << "one rank";
  auto parts = pieces(8, 0, 128 * KiB, 128 * KiB);
  parts[3].length = 64 * KiB;
  EXPECT_FALSE(fits(parts)) << "of unequal lengths";
  parts = pieces(8, 0, 128 * KiB, 128 * KiB);
  std::swap(parts[2], parts[5]);
  EXPECT_TRUE(fits(parts)) << "three quarters stay";
  std::swap(parts[0], parts[1]);
  EXPECT_FALSE(fits(parts)) << "out of order";
  parts = pieces(8, 0, 128 * KiB, 128 * KiB);
  parts[7].view = {StridedTree::contiguous(8), 7 * 128 * KiB, 16};
  EXPECT_FALSE(fits(parts)) << "in several pieces";
}

TEST(DomainsFor, AWindowIsTheHintsButOneUnitAtLeast) {
  const StripeLayout striped{.stripe_size = 64 * KiB, .servers = 4};
  Hints hints;
  EXPECT_EQ(domains_for(striped, hints, 4).window_bytes(), 512 * KiB);
  hints.buffer_size = 100 * KiB;
  EXPECT_EQ(domains_for(striped, hints, 4).window_bytes(), 64 * KiB);
  hints.buffer_size = 4 * KiB;
  EXPECT_EQ(domains_for(striped, hints, 4).window_bytes(), 64 * KiB);
  EXPECT_EQ(domains_for({}, hints, 4).window_bytes(), 4 * KiB);
}

TEST(GranuleOf, DividesTheUnit) {
  EXPECT_EQ(granule_of(64 * KiB), 64 * KiB);
  EXPECT_EQ(granule_of(4 * MiB), 512 * KiB);
  EXPECT_EQ(granule_of(3 * MiB), 384 * KiB);
  EXPECT_EQ(granule_of(MiB + 1), MiB + 1);
}

}  // namespace
}  // namespace forebay
