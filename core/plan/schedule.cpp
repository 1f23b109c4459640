#include "core/plan/schedule.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "core/plan/part_ends.hpp"

namespace forebay {
namespace {

constexpr Bytes beyond = std::numeric_limits<Bytes>::max();

/// How much of a part is looked at for whether its pieces are whole granules: a view is mostly as
/// regular as its beginning, and else costs flushes.
constexpr int most_runs_seen = 4096;

/// What of long parts has to be whole granules for an exchange of their ends alone to pay. Domains
/// of a striped file can be fitted to shorter ones.
constexpr double least_whole = 0.5;
constexpr double least_whole_striped = 0.875;

/// The offset of the first byte of `part` at or after `offset`; `beyond` if there is none.
Bytes next_offset(const RankPart& part, Bytes offset) {
  if (part.length == 0) return beyond;
  const Bytes position = std::max(part.start, data_before(part.view, offset));
  if (position >= part.end()) return beyond;
  TreeCursor cursor(part.view);
  cursor.seek_data(position);
  return cursor.offset();
}

/// Whether each piece of `part` is whole granules.
bool consists_of(const RankPart& part, Bytes granule) {
  if (part.length == 0) return true;
  if (seamless(part.view)) {
    const Extent bytes = part.hull();
    return bytes.offset % granule == 0 && bytes.length % granule == 0;
  }
  TreeCursor cursor(part.view);
  cursor.seek_data(part.start);
  Run run;
  for (int i = 0; i < most_runs_seen && cursor.next(part.end(), run); ++i) {
    if (run.offset % granule != 0 || run.block % granule != 0) return false;
    if (run.count > 1 && run.stride % granule != 0) return false;
  }
  return true;
}

/// Whether the hulls of two of these parts have bytes in the same unit.
bool hulls_meet(const std::vector<RankPart>& parts, Bytes unit) {
  std::vector<Extent> units;  // Numbers of those that each part has bytes in.
  units.reserve(parts.size());
  for (const RankPart& part : parts) {
    if (part.length == 0) continue;
    const Extent bytes = part.hull();
    const Bytes first = bytes.offset / unit;
    units.push_back({first, (bytes.end() - 1) / unit + 1 - first});
  }
  std::ranges::sort(units, {}, &Extent::offset);
  return std::ranges::adjacent_find(units, [](const Extent& one, const Extent& next) {
           return next.offset < one.end();
         }) != units.end();
}

/// Whether a granule would have two writers if each rank wrote its own part: another rank, or the
/// aggregator of an earlier call.
bool two_would_write(const std::vector<RankPart>& parts, const CachedWrites& cached) {
  return (cached.gathered || hulls_meet(parts, cached.granule)) &&
         !whole_granules(parts, cached.granule);
}

/// How many pieces of the file `part` consists of, near enough.
double pieces_of(const RankPart& part) {
  if (part.length == 0) return 0;
  if (seamless(part.view)) return 1;
  const Bytes tile = std::max<Bytes>(1, part.view.tree.size());
  const double tiles = static_cast<double>(part.length) / static_cast<double>(tile);
  return std::max(1.0, tiles * static_cast<double>(part.view.tree.pieces()));
}

/// What a call's parts come to, for choosing its path.
struct Workload {
  double bytes = 0;
  double pieces = 0;
  double most_pieces = 0;  ///< Of one rank.
  int active = 0;          ///< Ranks that move something.
};

Workload workload_of(const std::vector<RankPart>& parts) {
  Workload work;
  for (const RankPart& part : parts) {
    if (part.length == 0) continue;
    const double pieces = pieces_of(part);
    ++work.active;
    work.bytes += static_cast<double>(part.length);
    work.pieces += pieces;
    work.most_pieces = std::max(work.most_pieces, pieces);
  }
  return work;
}

/// The storage calls that one after the other take the time of a collective call.
struct CallCounts {
  double direct = 0;
  double exchange = 0;
};

/// Counted where a call is dear. Writers of one file wait for each other, so the calls of all
/// count; readers do not, so those of the busiest one count. An aggregator makes a call for each
/// window that holds data; where pieces are far apart, each is taken to lie in a window of its own.
CallCounts count_calls(const std::vector<RankPart>& parts, const Workload& work,
                       const PathQuestion& question) {
  Extent all;
  for (const RankPart& part : parts) all = hull(all, part.hull());
  const double window = static_cast<double>(question.domains.window_bytes());
  const double spread = std::min(work.pieces, static_cast<double>(all.length) / window);
  const double windows = std::max({1.0, work.bytes / window, spread});
  if (question.writing) return {work.pieces, windows};
  return {work.most_pieces, std::max(1.0, windows / question.domains.aggregators)};
}

}  // namespace

Extent RankPart::hull() const {
  if (length == 0) return {};
  TreeCursor cursor(view);
  cursor.seek_data(start);
  const Bytes first = cursor.offset();
  cursor.seek_data(end() - 1);
  return {first, cursor.offset() + 1 - first};
}

Bytes RankPart::bytes_in(Extent range) const {
  if (length == 0 || range.empty()) return 0;
  const Bytes low = std::clamp(data_before(view, range.offset), start, end());
  const Bytes high = std::clamp(data_before(view, range.end()), start, end());
  return high - low;
}

bool seamless(const TiledTree& view) {
  return view.tree.dense() && view.extent == view.tree.size();
}

bool whole_granules(const std::vector<RankPart>& parts, Bytes granule) {
  return std::ranges::all_of(
      parts, [granule](const RankPart& part) { return consists_of(part, granule); });
}

bool lie_apart(const std::vector<RankPart>& parts, Bytes unit) {
  const auto is_one_piece = [](const RankPart& part) {
    return part.length == 0 || seamless(part.view);
  };
  return std::ranges::all_of(parts, is_one_piece) && !hulls_meet(parts, unit);
}

Path choose_path(const std::vector<RankPart>& parts, const PathQuestion& question) {
  for (const RankPart& part : parts) {
    if (part.length > 0 && !part.view.monotone()) return Path::direct;
  }
  if (question.collective == Toggle::enable) return Path::exchange;
  if (question.collective == Toggle::disable) return Path::direct;
  if (question.writing && question.cached.unit > 0) {
    if (two_would_write(parts, question.cached)) {
      const double least = question.layout.striped() ? least_whole_striped : least_whole;
      return mostly_whole(parts, question.cached.granule, least) ? Path::split : Path::exchange;
    }
    if (lie_apart(parts, question.cached.unit)) return Path::direct;
  }

  const Workload work = workload_of(parts);
  const StorageCost& cost = question.cost;
  if (work.active == 0) return Path::direct;
  if (work.active == 1 && !cost.measured) {
    return question.layout.striped() && work.pieces > 1 ? Path::exchange : Path::direct;
  }
  if (question.writing && question.layout.lock_conflicts && work.pieces > work.active) {
    return Path::exchange;
  }

  // An exchange adds a pass over memory; it saves all calls but the aggregators' big ones. What was
  // read is stored past the caches.
  const double copy_byte_ns = question.writing ? 0.15 : 0.08;
  constexpr double rank_ns = 3000;  // Each rank's part in handing a window over and in the outcome.
  const double pass_ns = work.active * rank_ns + work.bytes * copy_byte_ns;
  // Into a page cache, the aggregators' calls are few enough to be left out.
  const CallCounts calls =
      cost.measured ? count_calls(parts, work, question) : CallCounts{work.pieces, 0};
  const double direct_ns = calls.direct * cost.call_ns;
  const double exchange_ns = pass_ns + calls.exchange * cost.call_ns;
  return direct_ns <= exchange_ns ? Path::direct : Path::exchange;
}

Schedule build_schedule(std::vector<RankPart> parts, const FileDomains& domains, Path path,
                        Bytes granule) {
  Schedule schedule;
  schedule.parts = std::move(parts);
  schedule.path = path;
  for (const RankPart& part : schedule.parts) schedule.total += part.length;
  if (path == Path::direct) return schedule;
  if (path == Path::split) {
    std::vector<RankPart> ends;
    ends.reserve(schedule.parts.size());
    for (const RankPart& part : schedule.parts) ends.push_back(ends_of(part, granule));
    Schedule exchange = build_schedule(std::move(ends), domains, Path::exchange);
    exchange.gaps_are_written = true;
    schedule.ends = std::make_shared<const Schedule>(std::move(exchange));
    return schedule;
  }

  schedule.hulls.reserve(schedule.parts.size());
  for (const RankPart& part : schedule.parts) {
    schedule.hulls.push_back(part.hull());
    schedule.hull = hull(schedule.hull, schedule.hulls.back());
  }
  // The rank that had data in the last round most likely has some in the next: asking it first
  // makes a dense file cost one look per round.
  std::size_t favourite = 0;
  Bytes offset = schedule.hull.offset;
  while (offset < schedule.hull.end()) {
    const Extent round = domains.round_extent(domains.round_of(offset));
    Bytes next = next_offset(schedule.parts[favourite], offset);
    for (std::size_t r = 0; next >= round.end() && r < schedule.parts.size(); ++r) {
      const Bytes candidate = next_offset(schedule.parts[r], offset);
      if (candidate < next) {
        next = candidate;
        favourite = r;
      }
    }
    if (next == beyond) break;
    schedule.rounds.push_back(domains.round_of(next));
    offset = domains.round_extent(schedule.rounds.back()).end();
  }
  return schedule;
}

std::vector<std::vector<Bytes>> domain_locality(const Schedule& schedule,
                                                const FileDomains& domains,
                                                const std::vector<int>& node_of_rank, int nodes,
                                                int samples) {
  std::vector<std::vector<Bytes>> bytes(static_cast<std::size_t>(domains.aggregators),
                                        std::vector<Bytes>(static_cast<std::size_t>(nodes), 0));
  const std::size_t step =
      std::max<std::size_t>(1, schedule.rounds.size() / static_cast<std::size_t>(samples));
  for (std::size_t i = 0; i < schedule.rounds.size(); i += step) {
    for (int j = 0; j < domains.aggregators; ++j) {
      for (const Extent& extent : domains.window_extents(j, schedule.rounds[i])) {
        for (std::size_t r = 0; r < schedule.parts.size(); ++r) {
          bytes[static_cast<std::size_t>(j)][static_cast<std::size_t>(node_of_rank[r])] +=
              schedule.parts[r].bytes_in(extent);
        }
      }
    }
  }
  return bytes;
}

}  // namespace forebay
