#pragma once

#include <vector>

namespace forebay {

/// Ranks whose logs are protected together, each on a node of its own, and ranks that keep the
/// parity pieces, each on a node that has none of the members and no other piece.
struct ProtectionGroup {
  std::vector<int> members;
  std::vector<int> holders;

  bool operator==(const ProtectionGroup&) const = default;
};

/// Divides ranks into groups of `members` nodes and as many pieces as `parities`, so that any
/// `parities` nodes may be lost: consecutive nodes are a group, and the nodes behind them, round
/// the corner, keep its pieces. `ranks_of_node`: ascending, not empty. Where there are too few
/// nodes, groups are smaller; none, if there are no more nodes than pieces.
///
/// Worked example: 5 nodes of 1 rank, 2 members, 1 parity: {0, 1} kept by 2, {2, 3} by 4, {4} by 0.
/// Ranks that are the second of their nodes are in groups of second ranks, and so on.
std::vector<ProtectionGroup> protection_groups(const std::vector<std::vector<int>>& ranks_of_node,
                                               int members, int parities);

}  // namespace forebay
