#pragma once

#include <algorithm>
#include <vector>

#include "core/model/extent.hpp"
#include "core/model/hints.hpp"
#include "core/model/stripe_layout.hpp"

namespace forebay {

/// Which aggregator moves which bytes of a file, and in which round. Pure functions of the absolute
/// offset, fixed while the file is open: two writes to the same byte pass through the same
/// aggregator, in the order in which they were made.
///
/// The file is dealt out to the aggregators unit by unit, round robin. A round takes
/// `units_per_window` units from each: they are the aggregator's window of that round.
/// Worked example: unit = 64 KiB, 4 aggregators, 2 units per window: a round is 512 KiB of the
/// file; aggregator 1 has bytes [64, 128) KiB and [320, 384) KiB of round 0, one behind the other
/// in its window.
struct FileDomains {
  Bytes unit = 1 * MiB;  ///< The stripe size, or the window where a file is not striped.
  int aggregators = 1;
  Bytes units_per_window = 1;

  constexpr Bytes window_bytes() const { return unit * units_per_window; }
  constexpr Bytes round_bytes() const { return window_bytes() * aggregators; }
  constexpr int aggregator_of(Bytes offset) const {
    return static_cast<int>(offset / unit % aggregators);
  }
  constexpr Bytes round_of(Bytes offset) const { return offset / round_bytes(); }
  constexpr Extent round_extent(Bytes round) const {
    return {round * round_bytes(), round_bytes()};
  }
  /// Where in its window the byte at `offset` lies.
  constexpr Bytes window_position(Bytes offset) const {
    return offset / unit / aggregators % units_per_window * unit + offset % unit;
  }
  /// The same with other units: windows are as long as before, but of one unit at least.
  constexpr FileDomains with_unit(Bytes other) const {
    return {other, aggregators, std::max<Bytes>(1, window_bytes() / other)};
  }
  /// The bytes of the file in one window, in file order; adjacent units are one extent.
  std::vector<Extent> window_extents(int aggregator, Bytes round) const;

  bool operator==(const FileDomains&) const = default;
};

/// How many aggregators a file gets if nobody says so by hint.
/// Striped: one per server, for the writers of one server only make each other wait; not more than
/// ranks, and not more than the network adapters of all nodes can feed when there are fewer of them
/// than servers and several nodes (at least one per node).
/// Not striped: on one node the ranks of that node share the work, at most `local_aggregators`;
/// over several nodes, one per adapter. Worked examples: 4 servers, 8 ranks on 4 nodes of 1
/// adapter: 4. 48 servers, 42 ranks on 2 nodes of 4 adapters: 8. A local file, 2 ranks: 2.
int choose_aggregators(const StripeLayout& layout, int nodes, int ranks, int adapters_per_node,
                       const Hints& hints);

/// Whether `adapters_per_node` makes a difference there: to count them takes tens of milliseconds.
bool adapters_matter(const StripeLayout& layout, int nodes, const Hints& hints);

/// The rank that serves each domain class: on the node that holds most of its bytes
/// (`bytes[aggregator][node]`), as far as no node gets more than its share; ranks of a node in
/// turn. Deterministic. Requires at least as many ranks as aggregators.  [PAPIO: locality-aware
/// two-phase]
std::vector<int> assign_aggregators(const std::vector<std::vector<Bytes>>& bytes,
                                    const std::vector<std::vector<int>>& ranks_of_node);

}  // namespace forebay
