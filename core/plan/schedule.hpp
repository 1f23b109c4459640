#pragma once

#include <memory>
#include <vector>

#include "core/model/extent.hpp"
#include "core/model/hints.hpp"
#include "core/model/strided_tree.hpp"
#include "core/model/stripe_layout.hpp"
#include "core/plan/file_domains.hpp"
#include "core/plan/storage_cost.hpp"

namespace forebay {

/// What one rank moves in one collective call: data positions [start, start + length) of its view.
struct RankPart {
  TiledTree view;
  Bytes start = 0;
  Bytes length = 0;

  Bytes end() const { return start + length; }

  /// From the first to the last byte touched; empty if length is 0. View must be monotone.
  Extent hull() const;

  /// Bytes of this part that lie in `range` of the file. View must be monotone.
  Bytes bytes_in(Extent range) const;

  bool operator==(const RankPart&) const = default;
};

/// Whether any range of data positions of `view` is one piece of the file.
bool seamless(const TiledTree& view);

/// Whether each of these parts is one piece of the file, and no two have bytes in the same unit of
/// it: a cache of each rank's own may then take them, whoever serves the units in an exchange.
bool lie_apart(const std::vector<RankPart>& parts, Bytes unit);

/// Whether each piece of these parts is whole granules, as far as is looked. Views must be
/// monotone.
bool whole_granules(const std::vector<RankPart>& parts, Bytes granule);

/// How a collective call is carried out.
enum class Path {
  exchange,  ///< Through aggregators.
  direct,    ///< Every rank moves its own pieces: there is nothing to gain from an exchange.
  split,     ///< Every rank moves the whole granules of its part; their ends are exchanged.
};

/// The plan of one collective call, the same on every rank: computed from all ranks' parts, once,
/// and reused when the call is repeated.
struct Schedule {
  std::vector<RankPart> parts;  ///< By rank.
  Path path = Path::direct;
  std::vector<Extent> hulls;  ///< Of each part; none if there is no exchange.
  Extent hull;                ///< Of all parts.
  Bytes total = 0;            ///< Bytes over all ranks.
  std::vector<Bytes> rounds;  ///< The numbers of the domain rounds that hold data, ascending.
  std::shared_ptr<const Schedule> ends;  ///< Of the exchange, if the path is split.
  /// It is that of ends: ranks write between them meanwhile, so what was read there is old.
  bool gaps_are_written = false;
};

/// What a collective write is to a cache in which each rank has a log of its own.
struct CachedWrites {
  Bytes unit = 0;     ///< Two ranks had better not write to the same so many bytes; 0: no cache.
  Bytes granule = 0;  ///< One rank's at a time: for the next one, a log is flushed. Divides `unit`.
  bool gathered = false;  ///< Aggregators have written to their logs.

  bool operator==(const CachedWrites&) const = default;
};

/// What `choose_path` looks at.
struct PathQuestion {
  bool writing = false;
  StripeLayout layout;
  StorageCost cost;
  Toggle collective = Toggle::automatic;  ///< The user's word, if any, is the answer.
  FileDomains domains;                    ///< Through which an exchange would go.
  CachedWrites cached = {};
};

/// Whether an exchange pays for these parts. Direct wins where each rank's pieces are so long that
/// the calls they cost weigh less than one more copy of the data and the waiting for others; it is
/// the only choice where a view is not monotone, and the best where each rank's cache takes what is
/// its own anyway. Where ranks' parts meet in a granule of the cache, or may meet what aggregators
/// hold, they are exchanged whatever that costs: a granule then has one writer, in all calls. Of
/// long pieces that is true of the granules at their ends alone.
/// Worked example, writing to a page cache at 1 us a call, an exchange at 0.15 ns a byte: rows of
/// 256 KiB cost 1 us against 39 us, so they go direct; rows of 1 KiB cost 1 us against 0.15 us and
/// are exchanged.
///
/// Where the cost is a measured one, the calls that aggregators would make count as well: they are
/// no longer a trifle. Worked example, writing at 3 ms a call, 4 ranks, windows of 512 KiB: rows of
/// 1 MiB cost 3 ms each, in windows two calls of 3 ms, so they go direct; of rows of 64 KiB, eight
/// share a window, 24 ms against 3 ms, so they are exchanged.
Path choose_path(const std::vector<RankPart>& parts, const PathQuestion& question);

/// The plan for `parts` over `domains`; `granule` is that of a path that is split. The cost does
/// not depend on the number of pieces in a regular view: O(rounds * depth) plus O(ranks * depth).
Schedule build_schedule(std::vector<RankPart> parts, const FileDomains& domains, Path path,
                        Bytes granule = 0);

/// Bytes of each domain class on each node, sampled over at most `samples` rounds: what the
/// placement of aggregators by locality goes by. Result[aggregator][node].
std::vector<std::vector<Bytes>> domain_locality(const Schedule& schedule,
                                                const FileDomains& domains,
                                                const std::vector<int>& node_of_rank, int nodes,
                                                int samples);

}  // namespace forebay
