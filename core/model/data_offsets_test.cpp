// Goal: each data byte of a tiled tree is found where a walk over the tree meets it.
// Method: random nested trees against the list of their bytes by brute force, asked in a random
// order; then the limits.

#include "core/model/data_offsets.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include "core/model/strided_tree_random.hpp"

namespace forebay {
namespace {

constexpr int depth = 4;
constexpr Bytes most = Bytes{1} << 62;

RC_GTEST_PROP(DataOffsetsProperty, finds_each_byte_of_each_copy, ()) {
  const RandomTree t = draw_tree(depth, *rc::gen::arbitrary<bool>());
  const Bytes displacement = *rc::gen::inRange<Bytes>(0, 1000);
  const Bytes extent = *rc::gen::inRange<Bytes>(0, 200);
  const DataOffsets offsets({t.tree, displacement, extent});
  const auto size = static_cast<Bytes>(t.bytes.size());
  if (size == 0) {
    RC_ASSERT(!offsets.at(0).has_value());
    return;
  }
  for (int i = 0; i < 50; ++i) {
    const Bytes position = *rc::gen::inRange<Bytes>(0, 4 * size);
    const Bytes copy = position / size;
    RC_ASSERT(offsets.at(position) ==
              displacement + copy * extent + t.bytes[static_cast<std::size_t>(position % size)]);
  }
}

TEST(DataOffsets, a_tree_of_strides_is_found_far_out) {
  // 3 planes of 5 rows of 7 bytes.
  const StridedTree row = StridedTree::contiguous(7);
  const StridedTree tree = StridedTree::strided(3, 1000, StridedTree::strided(5, 100, row));
  const DataOffsets offsets({tree, 4096, 10000});
  constexpr Bytes tiles = 1'000'000'000'000;
  constexpr Bytes plane = 35;
  EXPECT_EQ(offsets.at(3 * plane * tiles + 2 * plane + 34), 4096 + tiles * 10000 + 2406);
}

TEST(DataOffsets, nothing_lies_beyond_what_a_file_can_have) {
  const DataOffsets offsets({StridedTree::contiguous(1), 0, most / 2});
  EXPECT_EQ(offsets.at(1), most / 2);
  EXPECT_FALSE(offsets.at(2).has_value());
  EXPECT_FALSE(offsets.at(most).has_value());
}

}  // namespace
}  // namespace forebay
