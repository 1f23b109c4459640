// Goal: a StridedTree selects exactly the bytes it was built from, in their order, whatever the
// canonical form did with it; and the walk, the seeks and the wire form agree with it.
// Method: random nested trees against the list of their bytes by brute force, then worked examples
// of canonical form, then limits near 2^62.

#include "core/model/strided_tree.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <cstring>
#include <limits>

#include "core/model/strided_tree_random.hpp"

namespace forebay {
namespace {

constexpr int depth = 4;
constexpr int copies = 3;
// Inside a TEST, Run is a member function of ::testing::Test.
using TreeRun = Run;
using Runs = std::vector<Run>;

constexpr Bytes no_limit = std::numeric_limits<Bytes>::max();

void append_bytes(const Run& run, std::vector<Bytes>& bytes) {
  for (std::int64_t i = 0; i < run.count; ++i) {
    for (Bytes b = 0; b < run.block; ++b) bytes.push_back(run.offset + i * run.stride + b);
  }
}

bool ascending(const std::vector<Bytes>& bytes) {
  return std::adjacent_find(bytes.begin(), bytes.end(), std::greater_equal<>()) == bytes.end();
}

std::vector<Run> runs_of(const TiledTree& tiled, Bytes data_end) {
  TreeCursor cursor(tiled);
  std::vector<Run> runs;
  Run run;
  while (cursor.next(data_end, run)) runs.push_back(run);
  return runs;
}

StridedTree vector_of(std::int64_t count, Bytes stride, Bytes block) {
  return StridedTree::strided(count, stride, StridedTree::contiguous(block));
}

RC_GTEST_PROP(StridedTreeProperty, describes_the_bytes_it_was_built_from, ()) {
  const bool monotone = *rc::gen::arbitrary<bool>();
  const RandomTree t = draw_tree(depth, monotone);
  RC_ASSERT(t.tree.size() == static_cast<Bytes>(t.bytes.size()));
  if (t.bytes.empty()) {
    RC_ASSERT(t.tree.lower() == 0);
    RC_ASSERT(t.tree.upper() == 0);
    RC_ASSERT(t.tree == StridedTree());
    return;
  }
  const auto [low, high] = std::minmax_element(t.bytes.begin(), t.bytes.end());
  RC_ASSERT(t.tree.lower() == *low);
  RC_ASSERT(t.tree.upper() == *high + 1);
  RC_ASSERT(t.tree.monotone() == ascending(t.bytes));
  RC_ASSERT(t.tree.dense() ==
            (ascending(t.bytes) && static_cast<Bytes>(t.bytes.size()) == *high + 1 - *low));
  if (t.tree.dense()) RC_ASSERT(t.tree.pieces() == 1);

  // A tile this far from the next one cannot merge with it.
  std::int64_t pieces = 0;
  for (const Run& run : runs_of({t.tree, 0, 1 << 20}, t.tree.size())) pieces += run.count;
  RC_ASSERT(t.tree.pieces() == pieces);
}

RC_GTEST_PROP(StridedTreeProperty, is_walked_in_type_map_order, ()) {
  const RandomTiled t = draw_tiled(depth, *rc::gen::arbitrary<bool>(), copies);
  const auto total = static_cast<Bytes>(t.bytes.size());
  TreeCursor cursor(t.tiled);
  std::vector<Bytes> walked;
  Bytes stop = 0;
  while (stop < total) {
    stop = std::min<Bytes>(total, stop + *rc::gen::inRange<int>(1, 60));
    Run run;
    while (cursor.next(stop, run)) {
      RC_ASSERT(run.block > 0);
      RC_ASSERT(run.count > 0);
      append_bytes(run, walked);
      RC_ASSERT(cursor.data_position() == static_cast<Bytes>(walked.size()));
      if (cursor.data_position() < total) RC_ASSERT(cursor.offset() == t.bytes[walked.size()]);
    }
    RC_ASSERT(cursor.data_position() == stop);
  }
  RC_ASSERT(walked == t.bytes);
}

RC_GTEST_PROP(StridedTreeProperty, seeks_to_a_data_position_and_walks_on, ()) {
  const RandomTiled t = draw_tiled(depth, *rc::gen::arbitrary<bool>(), copies);
  const auto total = static_cast<Bytes>(t.bytes.size());
  const Bytes start = *rc::gen::inRange<Bytes>(0, total);
  TreeCursor cursor(t.tiled);
  cursor.seek_data(start);
  RC_ASSERT(cursor.data_position() == start);
  RC_ASSERT(cursor.offset() == t.bytes[start]);
  TreeCursor copy(cursor);
  TreeCursor moved(std::move(cursor));
  for (TreeCursor* walker : {&copy, &moved}) {
    std::vector<Bytes> walked;
    Run run;
    while (walker->next(total, run)) append_bytes(run, walked);
    RC_ASSERT(walked == std::vector<Bytes>(t.bytes.begin() + start, t.bytes.end()));
  }
}

RC_GTEST_PROP(StridedTreeProperty, seeks_to_an_offset_and_stops_at_one, ()) {
  const RandomTiled t = draw_tiled(depth, true, copies + 1);
  RC_ASSERT(t.tiled.monotone());
  // Only the first `copies` tiles are examined; the last one is what may follow.
  const auto total = static_cast<Bytes>(t.bytes.size()) / (copies + 1) * copies;
  const Bytes low = *rc::gen::inRange<Bytes>(t.bytes.front() - 5, t.bytes[total]);
  const Bytes high = *rc::gen::inRange<Bytes>(low, t.bytes[total] + 1);
  const Bytes data_end = *rc::gen::inRange<Bytes>(0, total + 1);
  const auto before = [&](Bytes offset) {
    return std::lower_bound(t.bytes.begin(), t.bytes.end(), offset) - t.bytes.begin();
  };
  RC_ASSERT(data_before(t.tiled, low) == before(low));
  TreeCursor cursor(t.tiled);
  cursor.seek_offset(low);
  RC_ASSERT(cursor.data_position() == before(low));
  RC_ASSERT(cursor.offset() == t.bytes[before(low)]);

  std::vector<Bytes> walked;
  Run run;
  while (cursor.next(data_end, high, run)) append_bytes(run, walked);
  const Bytes end = std::max<Bytes>(before(low), std::min<Bytes>(data_end, before(high)));
  RC_ASSERT(walked == std::vector<Bytes>(t.bytes.begin() + before(low), t.bytes.begin() + end));
  RC_ASSERT(cursor.data_position() == end);
}

RC_GTEST_PROP(StridedTreeProperty, tells_whether_copies_stay_in_order, ()) {
  const RandomTiled t = draw_tiled(depth, *rc::gen::arbitrary<bool>(), copies);
  RC_ASSERT(t.tiled.monotone() == ascending(t.bytes));
}

RC_GTEST_PROP(StridedTreeProperty, survives_the_wire, ()) {
  const StridedTree tree = draw_tree(depth, *rc::gen::arbitrary<bool>()).tree;
  const std::vector<std::byte> wire = tree.serialize();
  const Result<StridedTree> parsed = StridedTree::parse(wire);
  RC_ASSERT(parsed.has_value());
  RC_ASSERT(*parsed == tree);
  RC_ASSERT(parsed->fingerprint() == tree.fingerprint());
  RC_ASSERT(parsed->serialize() == wire);
  RC_ASSERT((tree.shifted(1).fingerprint() == tree.fingerprint()) == (tree.size() == 0));
}

RC_GTEST_PROP(StridedTreeProperty, refuses_a_wire_form_that_is_damaged, ()) {
  std::vector<std::byte> wire = draw_tree(depth, *rc::gen::arbitrary<bool>()).tree.serialize();
  const auto cut = *rc::gen::inRange<std::size_t>(0, wire.size());
  RC_ASSERT(!StridedTree::parse(std::span(wire).first(cut)).has_value());
  const auto at = *rc::gen::inRange<std::size_t>(0, wire.size());
  wire[at] ^= static_cast<std::byte>(*rc::gen::inRange<int>(1, 256));
  RC_ASSERT(!StridedTree::parse(wire).has_value());

  // With a checksum that fits, what is accepted must be exactly what serialize() makes.
  constexpr std::size_t header = 16;
  if (wire.size() == header) return;
  const std::uint64_t checksum = XXH3_64bits(wire.data() + header, wire.size() - header);
  for (int i = 0; i < 8; ++i) wire[8 + i] = static_cast<std::byte>(checksum >> (8 * i));
  const Result<StridedTree> parsed = StridedTree::parse(wire);
  if (parsed) RC_ASSERT(parsed->serialize() == wire);
}

TEST(StridedTree, a_stride_that_touches_is_contiguous) {
  EXPECT_EQ(vector_of(10, 8, 8), StridedTree::contiguous(80));
  EXPECT_EQ(vector_of(1, 99, 8), StridedTree::contiguous(8));
  EXPECT_EQ(vector_of(0, 99, 8), StridedTree());
  EXPECT_EQ(StridedTree::strided(5, 9, StridedTree()), StridedTree());
}

TEST(StridedTree, a_stride_that_continues_a_stride_is_one_stride) {
  EXPECT_EQ(StridedTree::strided(3, 64, vector_of(4, 16, 8)), vector_of(12, 16, 8));
  const StridedTree plane = StridedTree::strided(4, 100, vector_of(4, 16, 8));
  EXPECT_EQ(StridedTree::strided(3, 400, plane),
            StridedTree::strided(12, 100, vector_of(4, 16, 8)));
}

TEST(StridedTree, regular_lists_become_strides) {
  const std::vector<Bytes> rows = {5, 25, 45, 65};
  EXPECT_EQ(StridedTree::indexed(rows, std::vector<Bytes>(4, 8)), vector_of(4, 20, 8).shifted(5));
  EXPECT_EQ(StridedTree::indexed(rows, vector_of(2, 8, 3)),
            StridedTree::strided(4, 20, vector_of(2, 8, 3)).shifted(5));

  // A 3-D block spelt out piece by piece, as some libraries do.
  std::vector<Bytes> offsets;
  for (Bytes z = 0; z < 5; ++z) {
    for (Bytes y = 0; y < 4; ++y) offsets.push_back(z * 1000 + y * 100);
  }
  const StridedTree block = StridedTree::strided(5, 1000, vector_of(4, 100, 24));
  EXPECT_EQ(StridedTree::indexed(offsets, std::vector<Bytes>(20, 24)), block);
}

TEST(StridedTree, adjacent_blocks_of_a_list_merge) {
  const std::vector<Bytes> offsets = {0, 8, 99, 24, 32};
  const std::vector<Bytes> lengths = {8, 8, 0, 8, 8};
  EXPECT_EQ(StridedTree::indexed(offsets, lengths), vector_of(2, 24, 16));
}

TEST(StridedTree, a_structure_without_padding_is_contiguous) {
  const std::vector<StridedTree::Placed> fields = {
      {0, StridedTree::contiguous(4)}, {4, StridedTree::contiguous(4)}, {8, vector_of(3, 8, 8)}};
  EXPECT_EQ(StridedTree::sequence(fields), StridedTree::contiguous(32));
}

TEST(StridedTree, a_structure_of_equal_children_is_a_stride) {
  const StridedTree child = StridedTree::strided(3, 100, vector_of(4, 16, 8));
  std::vector<StridedTree::Placed> children;
  children.reserve(6);
  for (Bytes i = 0; i < 6; ++i) children.push_back({i * 1000, child});
  EXPECT_EQ(StridedTree::sequence(children), StridedTree::strided(6, 1000, child));
}

// An n-dimensional block of an array, each dimension a stride over the one inside it.
TEST(StridedTree, a_subarray_takes_no_more_than_a_stride_a_dimension) {
  const std::vector<Bytes> array = {40, 30, 20, 10};
  const std::vector<Bytes> part = {20, 15, 10, 5};
  StridedTree tree = StridedTree::contiguous(8 * part[3]);
  Bytes row = 8 * array[3];
  for (int d = 2; d >= 0; --d) {
    tree = StridedTree::strided(part[d], row, tree);
    row *= array[d];
  }
  EXPECT_EQ(tree.pieces(), 20 * 15 * 10);
  EXPECT_LE(tree.serialize().size(), 16 + 4 * 8);
  EXPECT_LE(tree.memory_bytes(), 512U);

  // As many pieces as one likes cost the same.
  EXPECT_EQ(vector_of(2, 16, 8).memory_bytes(), vector_of(1'000'000'000, 16, 8).memory_bytes());
}

// The worked example of docs/formats/view-tree.md.
TEST(StridedTree, is_written_as_documented) {
  const std::vector<std::byte> wire = vector_of(3, 16, 8).shifted(100).serialize();
  const std::vector<std::byte> body(wire.begin() + 16, wire.end());
  const std::vector<std::byte> documented = {std::byte{0xc8}, std::byte{0x01}, std::byte{0x01},
                                             std::byte{0x03}, std::byte{0x08}, std::byte{0x20}};
  EXPECT_EQ(body, documented);
}

TEST(TreeCursor, tiles_of_small_blocks_are_one_run) {
  const TiledTree view{StridedTree::contiguous(8), 100, 16};
  EXPECT_EQ(runs_of(view, 8'000'000), (Runs{{100, 8, 16, 1'000'000}}));
}

TEST(TreeCursor, tiles_that_touch_are_one_block) {
  const TiledTree view{StridedTree::contiguous(8), 100, 8};
  EXPECT_EQ(runs_of(view, 8'000'000), (Runs{{100, 8'000'000, 0, 1}}));
}

TEST(TreeCursor, tiles_that_continue_the_stride_are_one_run) {
  const TiledTree view{vector_of(4, 16, 8), 0, 64};
  EXPECT_EQ(runs_of(view, 8'000'000), (Runs{{0, 8, 16, 1'000'000}}));
}

TEST(TreeCursor, a_cut_block_is_a_run_of_its_own) {
  const TiledTree view{StridedTree::contiguous(8), 0, 16};
  TreeCursor cursor(view);
  cursor.seek_offset(3);
  Runs runs;
  TreeRun run;
  while (cursor.next(no_limit, 50, run)) runs.push_back(run);
  EXPECT_EQ(runs, (Runs{{3, 5, 0, 1}, {16, 8, 16, 2}, {48, 2, 0, 1}}));
  EXPECT_EQ(cursor.data_position(), 26);
  ASSERT_TRUE(cursor.next(no_limit, run));
  EXPECT_EQ(run.offset, 50);
  EXPECT_EQ(run.block, 6);
}

TEST(TreeCursor, an_offset_in_a_hole_leads_to_the_byte_behind_it) {
  const TiledTree view{vector_of(4, 16, 8), 1000, 256};
  TreeCursor cursor(view);
  const std::vector<std::pair<Bytes, Bytes>> cases = {{-5, 1000},   {1000, 1000},
                                                      {1008, 1016}, {1056, 1256},
                                                      {1255, 1256}, {256'001'009, 256'001'016}};
  for (const auto& [from, to] : cases) {
    cursor.seek_offset(from);
    EXPECT_EQ(cursor.offset(), to);
    EXPECT_EQ(cursor.data_position(), data_before(view, from));
  }
}

TEST(TreeCursor, memory_may_be_walked_backwards_or_on_the_spot) {
  EXPECT_EQ(runs_of({StridedTree::contiguous(8), 1000, -16}, 24), (Runs{{1000, 8, -16, 3}}));
  EXPECT_EQ(runs_of({StridedTree::contiguous(8), 1000, 0}, 24), (Runs{{1000, 8, 0, 3}}));
}

TEST(TreeCursor, an_empty_tree_has_nothing_to_walk) {
  TreeCursor cursor(TiledTree{StridedTree(), 0, 8});
  TreeRun run;
  EXPECT_FALSE(cursor.next(no_limit, run));
  cursor.seek_offset(100);
  EXPECT_FALSE(cursor.next(no_limit, run));
  EXPECT_EQ(data_before({StridedTree(), 0, 8}, 100), 0);
}

// Everything up to 2^62 is exact; behind that there is nothing, and nothing overflows.
TEST(TreeCursor, huge_offsets_do_not_overflow) {
  constexpr Bytes far = Bytes{1} << 62;
  const TiledTree dense{StridedTree::contiguous(1), 0, 1};
  EXPECT_EQ(data_before(dense, far - 1), far - 1);
  TreeCursor cursor(dense);
  cursor.seek_offset(far - 10);
  TreeRun run;
  ASSERT_TRUE(cursor.next(no_limit, run));
  EXPECT_EQ(run, (TreeRun{far - 10, 10, 0, 1}));
  EXPECT_FALSE(cursor.next(no_limit, run));

  const TiledTree late{vector_of(3, 1 << 20, 8), far - (Bytes{1} << 30), Bytes{1} << 24};
  cursor = TreeCursor(late);
  cursor.seek_offset(far - (1 << 24));
  ASSERT_TRUE(cursor.next(no_limit, far - 1, run));
  EXPECT_EQ(run, (TreeRun{far - (1 << 24), 8, 1 << 20, 3}));
  EXPECT_EQ(data_before(late, no_limit), 24 * 64);

  cursor = TreeCursor(TiledTree{StridedTree::contiguous(8), far, 8});
  EXPECT_FALSE(cursor.next(no_limit, run));
}

}  // namespace
}  // namespace forebay
