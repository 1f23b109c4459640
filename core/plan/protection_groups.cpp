#include "core/plan/protection_groups.hpp"

#include <algorithm>
#include <cstddef>

namespace forebay {

std::vector<ProtectionGroup> protection_groups(const std::vector<std::vector<int>>& ranks_of_node,
                                               int members, int parities) {
  const std::size_t nodes = ranks_of_node.size();
  const auto pieces = static_cast<std::size_t>(parities);
  std::vector<ProtectionGroup> groups;
  if (members < 1 || parities < 1 || nodes <= pieces) return groups;
  const std::size_t width = std::min(static_cast<std::size_t>(members), nodes - pieces);
  std::size_t most_ranks = 0;
  for (const auto& ranks : ranks_of_node) most_ranks = std::max(most_ranks, ranks.size());
  for (std::size_t local = 0; local < most_ranks; ++local) {
    for (std::size_t first = 0; first < nodes; first += width) {
      const std::size_t end = std::min(first + width, nodes);
      ProtectionGroup group;
      for (std::size_t node = first; node < end; ++node) {
        const auto& ranks = ranks_of_node[node];
        if (local < ranks.size()) group.members.push_back(ranks[local]);
      }
      if (group.members.empty()) continue;
      for (std::size_t piece = 0; piece < pieces; ++piece) {
        const auto& ranks = ranks_of_node[(end + piece) % nodes];
        group.holders.push_back(ranks[local % ranks.size()]);
      }
      groups.push_back(std::move(group));
    }
  }
  return groups;
}

}  // namespace forebay
