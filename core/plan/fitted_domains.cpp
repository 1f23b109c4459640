#include "core/plan/fitted_domains.hpp"

#include <algorithm>
#include <cstddef>

namespace forebay {
namespace {

/// Windows of files that are not striped stay in a core's cache between the copy into them and the
/// write out of them.
constexpr Bytes local_window_bytes = 512 * KiB;
constexpr Bytes striped_window_bytes = 4 * MiB;
constexpr Bytes striped_window_units = 8;

/// A smaller window would cost more in rounds than it saves in memory; a larger one would not fit
/// into a message.
constexpr Bytes least_window_bytes = 4 * KiB;
constexpr Bytes most_window_bytes = 256 * MiB;

/// A larger granule of the cache would be asked for by more ranks that write next to each other.
constexpr Bytes most_granule_bytes = 512 * KiB;

constexpr double least_kept = 0.75;  ///< Of the bytes, for a change of the unit to pay.

/// Bytes of `extent` in units of class `aggregator`. It has few units.
Bytes bytes_in_class(Extent extent, const FileDomains& domains, int aggregator) {
  Bytes bytes = 0;
  for (Bytes at = extent.offset; at < extent.end();) {
    const Bytes end = std::min(extent.end(), (at / domains.unit + 1) * domains.unit);
    if (domains.aggregator_of(at) == aggregator) bytes += end - at;
    at = end;
  }
  return bytes;
}

}  // namespace

FileDomains domains_for(const StripeLayout& layout, const Hints& hints, int aggregators) {
  FileDomains domains;
  domains.aggregators = aggregators;
  if (layout.striped()) {
    const Bytes window = hints.buffer_size.value_or(
        std::min(striped_window_bytes, striped_window_units * layout.stripe_size));
    // A window holds at least one unit: of stripes too long for that, a part is the unit.
    domains.unit = std::min(layout.stripe_size, most_window_bytes);
    domains.units_per_window =
        std::clamp<Bytes>(window / domains.unit, 1, most_window_bytes / domains.unit);
  } else {
    domains.unit = std::clamp(hints.buffer_size.value_or(local_window_bytes), least_window_bytes,
                              most_window_bytes);
    domains.units_per_window = 1;
  }
  return domains;
}

Bytes granule_of(Bytes unit) {
  while (unit > most_granule_bytes && unit % 2 == 0) unit /= 2;
  return unit;
}

std::vector<int> fitted_ranks(int aggregators, int ranks) {
  std::vector<int> serving;
  serving.reserve(static_cast<std::size_t>(aggregators));
  for (int j = 0; j < aggregators; ++j) {
    serving.push_back(static_cast<int>(std::int64_t{j} * ranks / aggregators));
  }
  return serving;
}

std::optional<FileDomains> fitted_domains(const std::vector<RankPart>& parts, FileDomains domains,
                                          Bytes most_unit) {
  const auto ranks = static_cast<int>(parts.size());
  if (ranks < 2 || ranks % domains.aggregators != 0) return std::nullopt;
  std::vector<Extent> extents;
  extents.reserve(parts.size());
  Bytes total = 0;
  for (const RankPart& part : parts) {
    if (part.length != parts.front().length || !seamless(part.view)) return std::nullopt;
    extents.push_back(part.hull());
    total += part.length;
  }
  const Bytes step = extents[1].offset - extents[0].offset;
  if (total == 0 || step <= 0 || step > most_unit) return std::nullopt;
  const Bytes wanted = step * (ranks / domains.aggregators);
  const Bytes units = std::max<Bytes>(1, (wanted + domains.unit / 2) / domains.unit);
  if (units * domains.unit > most_unit) return std::nullopt;

  domains = domains.with_unit(units * domains.unit);
  Bytes kept = 0;
  for (int rank = 0; rank < ranks; ++rank) {
    const auto aggregator = static_cast<int>(std::int64_t{rank} * domains.aggregators / ranks);
    kept += bytes_in_class(extents[static_cast<std::size_t>(rank)], domains, aggregator);
  }
  if (static_cast<double>(kept) < least_kept * static_cast<double>(total)) return std::nullopt;
  return domains;
}

}  // namespace forebay
