// Any bytes either are refused by StridedTree::parse, or are exactly what serialize() makes of the
// tree they describe; and a walk over that tree stays within its bounds. The input is tried as it
// is and as a body behind a header that fits, since no fuzzer guesses a checksum.

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <cstdlib>
#include <cstring>
#include <span>
#include <vector>

#include "core/model/strided_tree.hpp"

namespace {

using forebay::Bytes;
using forebay::StridedTree;

void require(bool holds) {
  if (!holds) std::abort();
}

void walk(const StridedTree& tree) {
  constexpr int runs_max = 10'000;
  const forebay::TiledTree tiled{tree, 0, tree.upper() - tree.lower()};
  forebay::TreeCursor cursor(tiled);
  forebay::Run run;
  Bytes position = 0;
  for (int i = 0; i < runs_max && cursor.next(tree.size(), run); ++i) {
    require(run.block > 0 && run.count > 0);
    const Bytes last = run.offset + (run.count - 1) * run.stride;
    require(run.offset >= tree.lower() && run.offset + run.block <= tree.upper());
    require(last >= tree.lower() && last + run.block <= tree.upper());
    position += run.bytes();
    require(cursor.data_position() == position && position <= tree.size());
  }
  if (tree.size() == 0) return;
  const Bytes middle = tree.size() / 2;
  cursor.seek_data(middle);
  require(cursor.data_position() == middle);
  if (!tiled.monotone()) return;
  require(data_before(tiled, cursor.offset()) == middle);
  cursor.seek_offset(cursor.offset());
  require(cursor.data_position() == middle);
}

void try_parse(std::span<const std::byte> wire) {
  const forebay::Result<StridedTree> tree = StridedTree::parse(wire);
  if (!tree) return;
  const std::vector<std::byte> again = tree->serialize();
  require(again.size() == wire.size() && std::memcmp(again.data(), wire.data(), wire.size()) == 0);
  walk(*tree);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto input = std::as_bytes(std::span(data, size));
  try_parse(input);

  const std::uint32_t version = 1;
  const std::uint64_t checksum = XXH3_64bits(data, size);
  std::vector<std::byte> wire(16 + size);
  std::memcpy(wire.data(), "FBVT", 4);
  std::memcpy(wire.data() + 4, &version, 4);
  std::memcpy(wire.data() + 8, &checksum, 8);
  if (size > 0) std::memcpy(wire.data() + 16, data, size);
  try_parse(wire);
  return 0;
}
