// Goal: every byte of a file has one place in one window of one aggregator, whatever the shape of
// the domains; aggregators are as many as pay and sit where the data is. Method: random domains
// byte by byte; the worked examples of the header; random placements against the rules they must
// keep.

#include "core/plan/file_domains.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <vector>

namespace forebay {
namespace {

int draw(int low, int high) {
  return *rc::gen::resize(rc::kNominalSize, rc::gen::inRange(low, high + 1));
}

RC_GTEST_PROP(FileDomainsProperty, partition_the_file, ()) {
  const FileDomains domains{draw(1, 9), draw(1, 6), draw(1, 5)};
  constexpr Bytes rounds = 3;
  const Bytes bytes = rounds * domains.round_bytes();
  std::vector<int> owners(static_cast<std::size_t>(bytes), 0);
  for (Bytes round = 0; round < rounds; ++round) {
    for (int j = 0; j < domains.aggregators; ++j) {
      Bytes position = 0;  // The extents of a window fill it in order.
      Bytes end = -1;
      for (const Extent& extent : domains.window_extents(j, round)) {
        RC_ASSERT(extent.offset > end);  // Ascending and not adjacent.
        end = extent.end();
        RC_ASSERT(intersect(extent, domains.round_extent(round)) == extent);
        for (Bytes at = extent.offset; at < extent.end(); ++at) {
          ++owners[static_cast<std::size_t>(at)];
          RC_ASSERT(domains.aggregator_of(at) == j);
          RC_ASSERT(domains.round_of(at) == round);
          RC_ASSERT(domains.window_position(at) == position++);
        }
      }
      RC_ASSERT(position == domains.window_bytes());
    }
  }
  RC_ASSERT(std::all_of(owners.begin(), owners.end(), [](int n) { return n == 1; }));
}

// The owner of a byte does not depend on how much is moved a round: overlapping writes keep their
// order even if the buffer size is changed while the file is open.
RC_GTEST_PROP(FileDomainsProperty, do_not_move_with_the_window, ()) {
  FileDomains domains{draw(1, 1 << 20), draw(1, 64), draw(1, 64)};
  const Bytes offset = *rc::gen::inRange<Bytes>(0, Bytes{1} << 50);
  const int owner = domains.aggregator_of(offset);
  domains.units_per_window = draw(1, 64);
  RC_ASSERT(domains.aggregator_of(offset) == owner);
}

// The worked example of the header.
TEST(FileDomains, deal_units_out_in_turn) {
  const FileDomains domains{64 * KiB, 4, 2};
  EXPECT_EQ(domains.round_bytes(), 512 * KiB);
  EXPECT_EQ(domains.window_extents(1, 0),
            (std::vector<Extent>{{64 * KiB, 64 * KiB}, {320 * KiB, 64 * KiB}}));
  EXPECT_EQ(domains.window_position(320 * KiB + 5), 64 * KiB + 5);
}

StripeLayout striped_over(int servers) { return {64 * KiB, servers, true}; }

TEST(ChooseAggregators, gives_each_server_one_writer) {
  EXPECT_EQ(choose_aggregators(striped_over(4), 4, 8, 1, {}), 4);
  EXPECT_EQ(choose_aggregators(striped_over(4), 1, 8, 1, {}), 4);
  EXPECT_EQ(choose_aggregators(striped_over(48), 2, 42, 4, {}), 8);
  EXPECT_EQ(choose_aggregators(striped_over(16), 1, 6, 1, {}), 6);
}

TEST(ChooseAggregators, shares_a_local_file_among_the_ranks_of_a_node) {
  EXPECT_EQ(choose_aggregators({}, 1, 1, 1, {}), 1);
  EXPECT_EQ(choose_aggregators({}, 1, 2, 1, {}), 2);
  EXPECT_LT(choose_aggregators({}, 1, 64, 1, {}), 64);
}

TEST(ChooseAggregators, follows_hints_as_far_as_there_are_ranks) {
  Hints hints;
  hints.aggregators_per_node = 2;
  EXPECT_EQ(choose_aggregators(striped_over(4), 3, 12, 1, hints), 6);
  hints.aggregators_per_node = 2'000'000'000;
  EXPECT_EQ(choose_aggregators(striped_over(4), 3, 12, 1, hints), 12);
  hints.aggregators = 3;
  EXPECT_EQ(choose_aggregators(striped_over(4), 3, 12, 1, hints), 3);
  hints.aggregators = 100;
  EXPECT_EQ(choose_aggregators(striped_over(4), 3, 12, 1, hints), 12);
}

RC_GTEST_PROP(ChooseAggregatorsProperty, asks_for_adapters_where_they_matter, ()) {
  Hints hints;
  if (draw(0, 3) == 0) hints.aggregators = draw(1, 9);
  if (draw(0, 3) == 0) hints.aggregators_per_node = draw(1, 3);
  const StripeLayout layout = draw(0, 1) == 0 ? StripeLayout{} : striped_over(draw(1, 12));
  const int nodes = draw(1, 6);
  const int ranks = nodes * draw(1, 4);
  const auto chosen = [&](int adapters) {
    return choose_aggregators(layout, nodes, ranks, adapters, hints);
  };
  if (!adapters_matter(layout, nodes, hints)) RC_ASSERT(chosen(1) == chosen(draw(2, 8)));
}

RC_GTEST_PROP(AssignAggregatorsProperty, spreads_distinct_ranks_over_the_nodes, ()) {
  const int nodes = draw(1, 5);
  std::vector<std::vector<int>> ranks_of_node(static_cast<std::size_t>(nodes));
  int ranks = 0;
  for (auto& mine : ranks_of_node) {
    for (int n = draw(1, 4); n > 0; --n) mine.push_back(ranks++);
  }
  const int aggregators = draw(1, ranks);
  std::vector<std::vector<Bytes>> bytes(static_cast<std::size_t>(aggregators));
  for (auto& row : bytes) {
    for (int n = 0; n < nodes; ++n) row.push_back(draw(0, 3));
  }
  const std::vector<int> rank_of = assign_aggregators(bytes, ranks_of_node);
  RC_ASSERT(rank_of.size() == bytes.size());
  RC_ASSERT(assign_aggregators(bytes, ranks_of_node) == rank_of);
  RC_ASSERT(std::set<int>(rank_of.begin(), rank_of.end()).size() == rank_of.size());

  // Where every node has ranks enough, none serves more than its share.
  const int share = (aggregators + nodes - 1) / nodes;
  std::vector<int> served;
  served.reserve(ranks_of_node.size());
  for (const auto& mine : ranks_of_node) {
    served.push_back(static_cast<int>(std::count_if(rank_of.begin(), rank_of.end(), [&](int rank) {
      return std::find(mine.begin(), mine.end(), rank) != mine.end();
    })));
  }
  RC_ASSERT(std::accumulate(served.begin(), served.end(), 0) == aggregators);
  const bool room_everywhere =
      std::all_of(ranks_of_node.begin(), ranks_of_node.end(),
                  [&](const auto& mine) { return static_cast<int>(mine.size()) >= share; });
  if (room_everywhere) RC_ASSERT(*std::max_element(served.begin(), served.end()) <= share);
}

TEST(AssignAggregators, sits_where_the_data_is) {
  const std::vector<std::vector<int>> ranks_of_node = {{0, 1}, {2, 3}};
  EXPECT_EQ(assign_aggregators({{10, 90}, {80, 20}}, ranks_of_node), (std::vector<int>{2, 0}));
  // Node 1 has the most of everything, and takes its share, the strongest claims first.
  EXPECT_EQ(assign_aggregators({{0, 50}, {0, 90}, {0, 80}, {0, 60}}, ranks_of_node),
            (std::vector<int>{0, 2, 3, 1}));
}

TEST(AssignAggregators, spreads_what_has_no_home) {
  const std::vector<std::vector<int>> ranks_of_node = {{0, 1}, {2, 3}};
  EXPECT_EQ(assign_aggregators({{5, 5}, {5, 5}}, ranks_of_node), (std::vector<int>{0, 2}));
}

}  // namespace
}  // namespace forebay
