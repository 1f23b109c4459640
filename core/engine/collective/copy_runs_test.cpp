// Goal: the copies move exactly the bytes that the two trees pair, and no other byte changes.
// Method: random file views and memory types against a byte-by-byte copy; the calls are cut at
// random points, as rounds cut them.

#include "core/engine/collective/copy_runs.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "core/model/strided_tree_random.hpp"

namespace forebay {
namespace {

constexpr int copies = 3;
constexpr std::byte untouched{0xee};

/// A buffer that holds every byte of `type`, whose displacement becomes an address in it.
struct Buffer {
  TiledTree type;
  std::vector<std::size_t> bytes;  ///< Where each data byte lies in `store`.
  std::vector<std::byte> store;

  explicit Buffer(const RandomTiled& random) : type(random.tiled) {
    const auto [low, high] = std::minmax_element(random.bytes.begin(), random.bytes.end());
    store.assign(static_cast<std::size_t>(*high - *low + 1), untouched);
    for (const Bytes byte : random.bytes) bytes.push_back(static_cast<std::size_t>(byte - *low));
    type.displacement += reinterpret_cast<std::intptr_t>(store.data()) - *low;
  }
};

std::byte value_of(std::size_t position) {
  return static_cast<std::byte>((position * 2654435761U) >> 8);
}

bool distinct(std::vector<Bytes> bytes) {
  std::sort(bytes.begin(), bytes.end());
  return std::adjacent_find(bytes.begin(), bytes.end()) == bytes.end();
}

/// Replaces a tree by one whose blocks are `factor` times as long, for the specialised lengths.
RandomTiled scaled(RandomTiled t, Bytes factor) {
  std::vector<Bytes> offsets;
  std::vector<Bytes> lengths;
  std::vector<Bytes> bytes;
  for (const Bytes byte : t.bytes) {
    offsets.push_back(byte * factor);
    lengths.push_back(factor);
    for (Bytes i = 0; i < factor; ++i) bytes.push_back(byte * factor + i);
  }
  t.tiled.tree = StridedTree::indexed(offsets, lengths);
  t.tiled.displacement = 0;
  t.tiled.extent = 1 << 24;
  t.bytes = std::move(bytes);
  return t;
}

RC_GTEST_PROP(CopyRuns, pair_the_bytes_of_memory_and_file, ()) {
  RandomTiled memory_bytes = draw_tiled(3, false, copies);
  RandomTiled file_bytes = draw_tiled(3, true, copies);
  if (*rc::gen::arbitrary<bool>()) {
    memory_bytes =
        scaled(memory_bytes, *rc::gen::element<Bytes>(1, 2, 4, 8, 12, 16, 40, 64, 515, 1280));
    file_bytes =
        scaled(file_bytes, *rc::gen::element<Bytes>(1, 2, 4, 8, 16, 24, 32, 48, 640, 1029));
  }
  // Memory that is read into may not overlap itself.
  const bool gather = *rc::gen::arbitrary<bool>() || !distinct(memory_bytes.bytes);
  const Direction direction =
      gather ? Direction::gather
             : *rc::gen::element(Direction::scatter, Direction::scatter_uncached);
  Buffer memory(memory_bytes);
  const Bytes origin = file_bytes.bytes.front();
  std::vector<std::byte> image(static_cast<std::size_t>(file_bytes.bytes.back() - origin + 1),
                               untouched);
  const auto total = static_cast<Bytes>(std::min(memory.bytes.size(), file_bytes.bytes.size()));

  std::vector<std::byte>& source = gather ? memory.store : image;
  for (std::size_t i = 0; i < source.size(); ++i) source[i] = value_of(i);
  auto memory_expected = memory.store;
  auto image_expected = image;
  for (Bytes i = 0; i < total; ++i) {
    std::byte& in_memory = memory_expected[memory.bytes[i]];
    std::byte& in_image = image_expected[static_cast<std::size_t>(file_bytes.bytes[i] - origin)];
    (gather ? in_image : in_memory) = gather ? in_memory : in_image;
  }

  TreeCursor walk(memory.type);
  TreeCursor file(file_bytes.tiled);
  while (file.data_position() < total) {
    const Bytes stop =
        std::min<Bytes>(total, file.data_position() + *rc::gen::inRange<int>(1, 5000));
    for (Run run; file.next(stop, run);) {
      copy_run(walk, run, image.data(), origin, direction);
      RC_ASSERT(walk.data_position() == file.data_position());
    }
  }
  RC_ASSERT(image == image_expected);
  RC_ASSERT(memory.store == memory_expected);
}

RC_GTEST_PROP(CopyRuns, pack_and_unpack_a_buffer, ()) {
  const RandomTiled random = draw_tiled(4, false, copies);
  Buffer memory(random);
  for (std::size_t i = 0; i < memory.store.size(); ++i) memory.store[i] = value_of(i);
  const auto total = static_cast<Bytes>(memory.bytes.size());
  const Bytes cut = *rc::gen::inRange<Bytes>(0, total + 1);

  std::vector<std::byte> packed(memory.bytes.size());
  TreeCursor walk(memory.type);
  copy_contiguous(walk, packed.data(), cut, Direction::gather);
  copy_contiguous(walk, packed.data() + cut, total - cut, Direction::gather);
  for (std::size_t i = 0; i < packed.size(); ++i) {
    RC_ASSERT(packed[i] == memory.store[memory.bytes[i]]);
  }

  if (!distinct(random.bytes)) return;
  auto expected = std::vector<std::byte>(memory.store.size(), untouched);
  for (const std::size_t byte : memory.bytes) expected[byte] = memory.store[byte];
  std::fill(memory.store.begin(), memory.store.end(), untouched);
  walk.seek_data(0);
  copy_contiguous(walk, packed.data(), total, Direction::scatter);
  RC_ASSERT(memory.store == expected);
}

}  // namespace
}  // namespace forebay
