#pragma once

#include <cstdint>
#include <vector>

#include "core/model/hints.hpp"
#include "core/model/strided_tree.hpp"

// What tests of collective files share.

namespace forebay {

inline TiledTree buffer_at(void* address) {
  return {StridedTree::contiguous(1), reinterpret_cast<std::intptr_t>(address), 1};
}

/// One collective call of all ranks.
struct Call {
  std::vector<TiledTree> views;
  std::vector<Bytes> starts;
  std::vector<Bytes> lengths;
};

/// Ranks interleave pieces of `piece` bytes.
inline Call interleaved(int ranks, Bytes piece, Bytes pieces_per_rank) {
  Call call;
  for (int r = 0; r < ranks; ++r) {
    call.views.push_back({StridedTree::contiguous(piece), r * piece, ranks * piece});
    call.starts.push_back(0);
    call.lengths.push_back(piece * pieces_per_rank);
  }
  return call;
}

/// The hints with which a collective call goes through aggregators, or does not.
inline Hints going(Toggle exchanged) {
  Hints hints;
  hints.collective_write = hints.collective_read = exchanged;
  return hints;
}

}  // namespace forebay
