// Goal: the plan of a call covers every byte once, skips what is empty, does not cost more for more
// pieces, and goes through aggregators exactly where that pays.
// Method: plans for small worlds are compared with what they must contain; bytes are counted.

#include "core/plan/schedule.hpp"

#include <gtest/gtest.h>

#include "core/plan/part_ends.hpp"

namespace forebay {
namespace {

/// Ranks deal out pieces of `piece` bytes in turn.
std::vector<RankPart> interleaved(int ranks, Bytes piece, Bytes pieces_per_rank) {
  std::vector<RankPart> parts;
  for (int r = 0; r < ranks; ++r) {
    parts.push_back(
        {{StridedTree::contiguous(piece), r * piece, ranks * piece}, 0, piece * pieces_per_rank});
  }
  return parts;
}

Path path_for(const std::vector<RankPart>& parts, bool writing, StripeLayout layout = {}) {
  return choose_path(
      parts, {writing, layout, expected_cost(layout, writing), Toggle::automatic, FileDomains()});
}

/// On a file that is not striped and whose calls were measured to take 3 ms.
Path slow_path_for(const std::vector<RankPart>& parts, bool writing) {
  const StorageCost slow{.call_ns = 3e6, .byte_ns = 0.4, .measured = true};
  const FileDomains domains{.unit = 512 * KiB, .aggregators = 4, .units_per_window = 1};
  return choose_path(parts, {writing, {}, slow, Toggle::automatic, domains});
}

TEST(Schedule, EveryByteIsInOneWindow) {
  const FileDomains domains{.unit = 1000, .aggregators = 3, .units_per_window = 2};
  const Schedule schedule = build_schedule(interleaved(4, 70, 500), domains, Path::exchange);
  EXPECT_EQ(schedule.total, 4 * 70 * 500);
  EXPECT_EQ(schedule.hull, (Extent{0, 4 * 70 * 500}));
  for (const RankPart& part : schedule.parts) {
    Bytes found = 0;
    for (const Bytes round : schedule.rounds) {
      for (int j = 0; j < domains.aggregators; ++j) {
        for (const Extent& extent : domains.window_extents(j, round)) {
          found += part.bytes_in(extent);
        }
      }
    }
    EXPECT_EQ(found, part.length);
  }
}

TEST(Schedule, EmptyRoundsAreSkippedHoweverManyThereAre) {
  const FileDomains domains{.unit = 4096, .aggregators = 2, .units_per_window = 1};
  std::vector<RankPart> parts = interleaved(2, 100, 3);
  for (RankPart& part : parts) part.view.extent = 1'000 * GiB;  // three places, far apart
  const Schedule schedule = build_schedule(parts, domains, Path::exchange);
  EXPECT_EQ(schedule.rounds.size(), 3U);
}

TEST(Schedule, APlanForAMillionPiecesIsThatForOne) {
  const FileDomains domains{.unit = 64 * MiB, .aggregators = 2, .units_per_window = 1};
  const Schedule few = build_schedule(interleaved(2, 4 * MiB, 2), domains, Path::exchange);
  const Schedule many = build_schedule(interleaved(2, 8, MiB), domains, Path::exchange);
  EXPECT_EQ(few.rounds, many.rounds);
  EXPECT_EQ(many.parts[0].view.tree.pieces(), 1);
}

TEST(Schedule, ADirectPlanHasNoRounds) {
  EXPECT_TRUE(build_schedule(interleaved(2, 8, 10), {}, Path::direct).rounds.empty());
}

TEST(ChoosePath, SmallPiecesAreExchangedLongOnesAreNot) {
  EXPECT_EQ(path_for(interleaved(2, 8, 100'000), true), Path::exchange);
  EXPECT_EQ(path_for(interleaved(2, 8, 100'000), false), Path::exchange);
  EXPECT_EQ(path_for(interleaved(2, MiB, 10), true), Path::direct);
  EXPECT_EQ(path_for(interleaved(2, MiB, 10), false), Path::direct);
}

TEST(ChoosePath, AFewSmallPiecesAreNotWorthWaitingForOthers) {
  EXPECT_EQ(path_for(interleaved(2, 100, 1), true), Path::direct);
}

TEST(ChoosePath, WritersThatShareStripesAreKeptApart) {
  const StripeLayout lustre{.stripe_size = MiB, .servers = 4, .lock_conflicts = true};
  EXPECT_EQ(path_for(interleaved(8, 256 * KiB, 100), true, lustre), Path::exchange);
}

TEST(ChoosePath, ViewsThatGoBackwardsAreNeverExchanged) {
  auto parts = interleaved(2, 8, 1000);
  const Bytes offsets[] = {8, 0};
  parts[0].view = {StridedTree::indexed(offsets, StridedTree::contiguous(4)), 0, 16};
  EXPECT_EQ(path_for(parts, false), Path::direct);
}

TEST(ChoosePath, TheUsersWordIsLaw) {
  PathQuestion question{true, {}, expected_cost({}, true), Toggle::enable, FileDomains()};
  EXPECT_EQ(choose_path(interleaved(2, MiB, 10), question), Path::exchange);
  question.collective = Toggle::disable;
  EXPECT_EQ(choose_path(interleaved(2, 8, 100'000), question), Path::direct);
}

TEST(ChoosePath, WhereCallsAreSlowPiecesThatShareAWindowAreExchanged) {
  for (const bool writing : {true, false}) {
    EXPECT_EQ(path_for(interleaved(4, 256 * KiB, 100), writing), Path::direct) << writing;
    EXPECT_EQ(slow_path_for(interleaved(4, 256 * KiB, 100), writing), Path::exchange) << writing;
    EXPECT_EQ(slow_path_for(interleaved(4, MiB, 100), writing), Path::direct) << writing;
  }
}

TEST(ChoosePath, WhereCallsAreSlowPiecesFarApartAreNotExchanged) {
  std::vector<RankPart> parts = interleaved(4, 100, 50);
  EXPECT_EQ(slow_path_for(parts, true), Path::exchange);
  for (RankPart& part : parts) part.view.extent = 10 * GiB;
  EXPECT_EQ(slow_path_for(parts, true), Path::direct);
}

TEST(ChoosePath, WhereCallsAreSlowOneRanksSmallPiecesAreGathered) {
  std::vector<RankPart> parts = interleaved(2, 8, 1000);
  parts[1].length = 0;
  EXPECT_EQ(path_for(parts, true), Path::direct);
  EXPECT_EQ(slow_path_for(parts, true), Path::exchange);
}

TEST(ChoosePath, WhereCallsAreSlowShortSeamlessPiecesShareACall) {
  std::vector<RankPart> parts;
  for (int r = 0; r < 8; ++r) {
    parts.push_back({{StridedTree::contiguous(1), 0, 1}, r * 100, 100});
  }
  EXPECT_EQ(path_for(parts, true), Path::direct);
  EXPECT_EQ(slow_path_for(parts, true), Path::exchange);
  for (int r = 0; r < 8; ++r) {
    const auto i = static_cast<std::size_t>(r);
    parts[i].start = r * MiB;
    parts[i].length = MiB;
  }
  EXPECT_EQ(slow_path_for(parts, true), Path::direct);
}

TEST(ChoosePath, WhatLiesApartStaysInEachRanksCache) {
  const StripeLayout striped{.stripe_size = 64 * KiB, .servers = 4, .lock_conflicts = true};
  PathQuestion question{true, striped, expected_cost(striped, true), Toggle::automatic, {}};
  std::vector<RankPart> parts;
  for (int r = 0; r < 8; ++r) {
    parts.push_back({{StridedTree::contiguous(1), 0, 1}, r * 64 * KiB, 64 * KiB});
  }
  question.cost.measured = true;
  question.cost.call_ns = 3e6;
  question.domains = {.unit = 64 * KiB, .aggregators = 4, .units_per_window = 8};
  EXPECT_EQ(choose_path(parts, question), Path::exchange);
  question.cached = {.unit = 64 * KiB, .granule = 64 * KiB};
  EXPECT_EQ(choose_path(parts, question), Path::direct);
  question.collective = Toggle::enable;
  EXPECT_EQ(choose_path(parts, question), Path::exchange) << "the user's word";
}

/// Ranks write `length` bytes each, one behind the other from `first` on.
std::vector<RankPart> behind(int ranks, Bytes first, Bytes length) {
  std::vector<RankPart> parts;
  for (int r = 0; r < ranks; ++r) {
    parts.push_back({{StridedTree::contiguous(1), first, 1}, r * length, length});
  }
  return parts;
}

/// Of a file that is not striped, with a cache.
Path cached_path_for(const std::vector<RankPart>& parts, bool gathered,
                     Toggle collective = Toggle::automatic) {
  PathQuestion question{true, {}, expected_cost({}, true), collective, {.unit = 512 * KiB}};
  question.cached = {.unit = 512 * KiB, .granule = 512 * KiB, .gathered = gathered};
  return choose_path(parts, question);
}

TEST(ChoosePath, NoGranuleOfACacheHasTwoWriters) {
  const auto halves = behind(8, 0, 256 * KiB);
  EXPECT_EQ(path_for(halves, true), Path::direct) << "without a cache";
  EXPECT_EQ(cached_path_for(halves, false), Path::exchange);
  EXPECT_EQ(cached_path_for(halves, false, Toggle::disable), Path::direct) << "the user's word";
  EXPECT_EQ(cached_path_for(behind(8, 6 * KiB, 3 * MiB / 4), false), Path::exchange);
  EXPECT_EQ(cached_path_for(behind(8, 0, MiB), false), Path::direct);
  EXPECT_EQ(cached_path_for(interleaved(8, MiB, 10), false), Path::direct);
  EXPECT_EQ(cached_path_for(interleaved(8, 3 * MiB / 4, 10), false), Path::exchange);
}

TEST(ChoosePath, OfLongPiecesOnlyTheEndsAreExchanged) {
  const auto longer = behind(8, 6 * KiB, 16 * MiB);
  EXPECT_EQ(cached_path_for(longer, false), Path::split);
  EXPECT_EQ(cached_path_for(longer, true), Path::split);
  EXPECT_EQ(path_for(longer, true), Path::direct) << "without a cache";
  auto some = longer;
  some[3].view = {StridedTree::contiguous(MiB), 51 * MiB, 2 * MiB};
  some[3].start = 0;
  EXPECT_EQ(cached_path_for(some, false), Path::exchange) << "one is no piece";
}

TEST(Schedule, OfASplitPathThereIsOneOfTheEnds) {
  constexpr Bytes granule = 1000;
  const FileDomains domains{.unit = granule, .aggregators = 2, .units_per_window = 1};
  // They meet at 10,050, and end at 20,000.
  const Schedule schedule = build_schedule(behind(2, 100, 9950), domains, Path::split, granule);
  EXPECT_EQ(schedule.total, 2 * 9950);
  EXPECT_TRUE(schedule.rounds.empty());
  ASSERT_NE(schedule.ends, nullptr);
  const Schedule& ends = *schedule.ends;
  EXPECT_EQ(ends.path, Path::exchange);
  EXPECT_TRUE(ends.gaps_are_written);
  EXPECT_EQ(ends.rounds, (std::vector<Bytes>{0, 5}));
  EXPECT_EQ(ends.parts[0].length, 900 + 50);
  EXPECT_EQ(ends.parts[0].bytes_in({100, 900}), 900);
  EXPECT_EQ(ends.parts[0].bytes_in({10'000, 50}), 50);
  EXPECT_EQ(ends.parts[1].length, 950);
  EXPECT_EQ(ends.parts[1].hull(), (Extent{10'050, 950}));
}

TEST(PartEnds, AreWhatIsNoWholeGranule) {
  const auto inside = [](Bytes first, Bytes length) {
    return whole_granules_in(behind(1, first, length)[0], 512 * KiB);
  };
  EXPECT_EQ(inside(6 * KiB, 5 * MiB), (Extent{512 * KiB, 9 * 512 * KiB}));
  EXPECT_EQ(inside(0, MiB), (Extent{0, MiB}));
  EXPECT_TRUE(inside(1, MiB - 2).empty());
  EXPECT_EQ(ends_of(behind(1, 1, MiB - 2)[0], 512 * KiB).hull(), (Extent{1, MiB - 2}));
  EXPECT_EQ(ends_of(behind(1, 0, MiB)[0], 512 * KiB).length, 0);
  EXPECT_EQ(ends_of(behind(1, 7, 0)[0], 512 * KiB).length, 0);
}

TEST(ChoosePath, WhatAggregatorsMayHoldGoesToThem) {
  std::vector<RankPart> header = behind(8, 100, 0);
  header[3].length = 500;
  EXPECT_EQ(cached_path_for(header, false), Path::direct);
  EXPECT_EQ(cached_path_for(header, true), Path::exchange);
  EXPECT_EQ(cached_path_for(behind(8, 0, MiB), true), Path::direct) << "whole granules";
  EXPECT_EQ(cached_path_for(interleaved(8, MiB, 10), true), Path::direct) << "whole granules";
  EXPECT_EQ(cached_path_for(behind(8, 0, 0), true), Path::direct) << "nothing";
}

TEST(LieApart, NoUnitIsTwoRanks) {
  std::vector<RankPart> parts = {{{StridedTree::contiguous(1), 0, 1}, 100, 50},
                                 {{StridedTree::contiguous(1), 0, 1}, 0, 100},
                                 {{StridedTree::contiguous(1), 0, 1}, 7, 0}};
  EXPECT_TRUE(lie_apart(parts, 100));
  EXPECT_TRUE(lie_apart(parts, 50));
  EXPECT_FALSE(lie_apart(parts, 101)) << "the second one begins in the first one's unit";
  parts[2] = {{StridedTree::contiguous(1), 0, 1}, 150, 10};
  EXPECT_FALSE(lie_apart(parts, 100));
  parts[2] = {{StridedTree::contiguous(8), 1000, 16}, 0, 80};
  EXPECT_FALSE(lie_apart(parts, 10)) << "several pieces";
}

TEST(ChoosePath, NobodyMovingAnythingIsNoReasonToExchange) {
  std::vector<RankPart> parts = interleaved(2, 8, 0);
  EXPECT_EQ(path_for(parts, true), Path::direct);
  EXPECT_EQ(slow_path_for(parts, true), Path::direct);
}

TEST(DomainLocality, CountsTheBytesOfEachNode) {
  const FileDomains domains{.unit = 1000, .aggregators = 2, .units_per_window = 1};
  // Rank 0 has the even units, rank 1 the odd ones.
  const Schedule schedule = build_schedule(interleaved(2, 1000, 20), domains, Path::exchange);
  const auto bytes = domain_locality(schedule, domains, {0, 1}, 2, 1000);
  EXPECT_EQ(bytes[0], (std::vector<Bytes>{20'000, 0}));
  EXPECT_EQ(bytes[1], (std::vector<Bytes>{0, 20'000}));
  EXPECT_EQ(assign_aggregators(bytes, {{0}, {1}}), (std::vector<int>{0, 1}));
  EXPECT_EQ(assign_aggregators({{0, 9}, {9, 0}}, {{0}, {1}}), (std::vector<int>{1, 0}));
}

}  // namespace
}  // namespace forebay
