#pragma once

#include <cstdint>
#include <limits>

#include "core/model/extent.hpp"
#include "core/plan/storage_cost.hpp"

namespace forebay {

/// What storage calls cost, for choosing how to write pieces that lie close to each other: each by
/// itself, or all in one span that is read, changed and written back under a lock (data sieving).
struct SievingCost {
  StorageCost write;
  StorageCost read;
  bool in_turn = false;  ///< Writers of one file wait for each other in any case.
  /// From this length on a piece goes into a client's cache without anything being waited for, so
  /// that a call for it costs far less than `write` says.
  Bytes cached_piece = std::numeric_limits<Bytes>::max();
};

/// Of a file whose servers clients cache: so long a piece holds a page, which is not read first.
constexpr Bytes client_cached_piece = 8 * KiB;

/// Pieces of one writer in ascending order, and the gaps between them.
struct Cluster {
  std::int64_t pieces = 0;
  Bytes bytes = 0;  ///< Of the pieces.
  Bytes span = 0;   ///< From the first byte to the last, with the gaps.
};

/// Whether sieving the cluster is cheaper than a call for each piece. The lock and its release are
/// taken for one call. Gaps are most often what other ranks write at the same time, and each has to
/// wait for the lock: where they would not have to wait for each other's calls, the time counts as
/// often as pieces like these would fill the span.
///
/// Worked example, a page cache at 1 us and 0.4 ns a byte: of 8 bytes in every 16, a span of 512
/// KiB holds 32768 pieces, 33 ms by themselves and 0.42 ms sieved; of 8 bytes in every 4096 it
/// holds 128, 0.13 ms against 0.42 ms. A server at 1 ms and 1 ns, 32 ranks: of 4 KiB in every 128
/// KiB it holds 4, 4 ms against 32 * 4 ms.
bool sieving_pays(const Cluster& cluster, const SievingCost& cost);

/// A gap from which on it is cheaper to begin another span than to read and write the gap.
Bytes most_sieved_gap(const SievingCost& cost);

}  // namespace forebay
