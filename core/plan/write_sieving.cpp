#include "core/plan/write_sieving.hpp"

#include <algorithm>

namespace forebay {

bool sieving_pays(const Cluster& cluster, const SievingCost& cost) {
  if (cluster.pieces < 2 || cluster.bytes == cluster.span) return false;
  if (cluster.bytes / cluster.pieces >= cost.cached_piece) return false;
  const double apart_ns = static_cast<double>(cluster.pieces) * cost.write.call_ns +
                          static_cast<double>(cluster.bytes) * cost.write.byte_ns;
  const double lock_ns = cost.write.call_ns;
  const double sieved_ns = lock_ns + cost.read.of(cluster.span) + cost.write.of(cluster.span);
  const double writers =
      cost.in_turn ? 1 : static_cast<double>(cluster.span) / static_cast<double>(cluster.bytes);
  return writers * sieved_ns < apart_ns;
}

Bytes most_sieved_gap(const SievingCost& cost) {
  const double byte_ns = cost.read.byte_ns + cost.write.byte_ns;
  return static_cast<Bytes>(cost.write.call_ns / std::max(byte_ns, 0.01));
}

}  // namespace forebay
