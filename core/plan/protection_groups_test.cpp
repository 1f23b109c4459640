// Goal: whatever nodes are lost, up to as many as there are parity pieces, no group has lost more
// of its members and pieces than it can get back. Method: random machines, every rank and every
// group looked at; worked examples.

#include "core/plan/protection_groups.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <map>
#include <set>

namespace forebay {
namespace {

RC_GTEST_PROP(ProtectionGroupsProperty, are_hit_once_by_the_loss_of_a_node, ()) {
  std::vector<std::vector<int>> nodes(*rc::gen::inRange<std::size_t>(1, 12));
  std::map<int, std::size_t> node_of;
  int rank = 0;
  for (std::size_t node = 0; node < nodes.size(); ++node) {
    const int ranks = *rc::gen::inRange(1, 5);
    for (int i = 0; i < ranks; ++i, ++rank) {
      nodes[node].push_back(rank);
      node_of[rank] = node;
    }
  }
  const int members = *rc::gen::inRange(1, 8);
  const int parities = *rc::gen::inRange(1, 4);
  const auto groups = protection_groups(nodes, members, parities);
  if (static_cast<int>(nodes.size()) <= parities) {
    RC_ASSERT(groups.empty());
    return;
  }
  std::multiset<int> protected_ranks;
  for (const ProtectionGroup& group : groups) {
    RC_ASSERT(static_cast<int>(group.members.size()) <= members);
    RC_ASSERT(static_cast<int>(group.holders.size()) == parities);
    std::set<std::size_t> used;
    for (const int member : group.members) {
      RC_ASSERT(used.insert(node_of.at(member)).second);
      protected_ranks.insert(member);
    }
    for (const int holder : group.holders) RC_ASSERT(used.insert(node_of.at(holder)).second);
  }
  RC_ASSERT(static_cast<int>(protected_ranks.size()) == rank);
  RC_ASSERT(std::set<int>(protected_ranks.begin(), protected_ranks.end()).size() ==
            protected_ranks.size());
}

TEST(ProtectionGroups, AreNeighboursKeptByTheNextNodes) {
  const std::vector<std::vector<int>> nodes = {{0}, {1}, {2}, {3}, {4}};
  EXPECT_EQ(protection_groups(nodes, 2, 1),
            (std::vector<ProtectionGroup>{{{0, 1}, {2}}, {{2, 3}, {4}}, {{4}, {0}}}));
  EXPECT_EQ(protection_groups(nodes, 1, 1)[4], (ProtectionGroup{{4}, {0}})) << "partners";
}

TEST(ProtectionGroups, AreSmallerWhereNodesAreFew) {
  EXPECT_EQ(protection_groups({{0, 1}, {2, 3}}, 8, 1),
            (std::vector<ProtectionGroup>{{{0}, {2}}, {{2}, {0}}, {{1}, {3}}, {{3}, {1}}}));
}

TEST(ProtectionGroups, OfNodesWithFewerRanksAreKeptByThoseTheyHave) {
  EXPECT_EQ(protection_groups({{0, 1, 2}, {3}}, 1, 1),
            (std::vector<ProtectionGroup>{{{0}, {3}}, {{3}, {0}}, {{1}, {3}}, {{2}, {3}}}));
}

}  // namespace
}  // namespace forebay
