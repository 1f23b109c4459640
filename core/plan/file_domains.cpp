#include "core/plan/file_domains.hpp"

#include <algorithm>
#include <cstdint>

namespace forebay {
namespace {

/// More writers than this into one local file wait for the inode's lock, not for memory.
constexpr int local_aggregators = 4;

}  // namespace

std::vector<Extent> FileDomains::window_extents(int aggregator, Bytes round) const {
  if (aggregators == 1) return {round_extent(round)};
  std::vector<Extent> extents;
  extents.reserve(static_cast<std::size_t>(units_per_window));
  const Bytes begin = round_extent(round).offset;
  for (Bytes k = 0; k < units_per_window; ++k) {
    extents.push_back({begin + (k * aggregators + aggregator) * unit, unit});
  }
  return extents;
}

int choose_aggregators(const StripeLayout& layout, int nodes, int ranks, int adapters_per_node,
                       const Hints& hints) {
  if (hints.aggregators) return std::clamp(*hints.aggregators, 1, ranks);
  if (hints.aggregators_per_node) {
    // A node has no more than all ranks; so there is no overflow.
    const std::int64_t wanted = std::int64_t{std::min(*hints.aggregators_per_node, ranks)} * nodes;
    return static_cast<int>(std::clamp<std::int64_t>(wanted, 1, ranks));
  }
  const int adapters = nodes * std::max(1, adapters_per_node);
  if (layout.striped()) {
    const int useful = nodes > 1 ? std::min(layout.servers, adapters) : layout.servers;
    return std::clamp(useful, 1, ranks);
  }
  return std::clamp(nodes > 1 ? adapters : local_aggregators, 1, ranks);
}

bool adapters_matter(const StripeLayout& layout, int nodes, const Hints& hints) {
  if (hints.aggregators || hints.aggregators_per_node || nodes == 1) return false;
  return !layout.striped() || layout.servers > nodes;
}

std::vector<int> assign_aggregators(const std::vector<std::vector<Bytes>>& bytes,
                                    const std::vector<std::vector<int>>& ranks_of_node) {
  const std::size_t aggregators = bytes.size();
  const std::size_t nodes = ranks_of_node.size();
  // No node serves more than its share, nor more than it has ranks; what small nodes cannot take is
  // left to the others.
  std::vector<std::size_t> room(nodes);
  std::size_t share = (aggregators + nodes - 1) / nodes;
  for (std::size_t total = 0; total < aggregators; ++share) {
    total = 0;
    for (std::size_t n = 0; n < nodes; ++n) {
      room[n] = std::min(share, ranks_of_node[n].size());
      total += room[n];
    }
  }
  // The pair with the most bytes first.
  struct Wish {
    Bytes bytes;
    std::size_t aggregator;
    std::size_t node;
  };
  std::vector<Wish> wishes;
  for (std::size_t j = 0; j < aggregators; ++j) {
    for (std::size_t n = 0; n < nodes; ++n) wishes.push_back({bytes[j][n], j, n});
  }
  // Among equals, class j prefers node j % nodes: that spreads what has no locality.
  const auto detour = [nodes](const Wish& wish) {
    return (wish.node + nodes - wish.aggregator % nodes) % nodes;
  };
  std::stable_sort(wishes.begin(), wishes.end(), [&](const Wish& a, const Wish& b) {
    if (a.bytes != b.bytes) return a.bytes > b.bytes;
    return detour(a) < detour(b);
  });
  std::vector<int> rank_of(aggregators, -1);
  std::vector<std::size_t> served(nodes, 0);
  for (const Wish& wish : wishes) {
    if (rank_of[wish.aggregator] >= 0 || served[wish.node] == room[wish.node]) continue;
    rank_of[wish.aggregator] = ranks_of_node[wish.node][served[wish.node]++];
  }
  return rank_of;
}

}  // namespace forebay
