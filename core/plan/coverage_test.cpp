// Goal: coverage() is exact, with overlaps, holes, cut pieces and whatever regularity it takes
// advantage of.
// Method: random monotone views of several ranks against a count per byte; then the patterns that
// have fast paths, at sizes where only the fast path is feasible.

#include "core/plan/coverage.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <cstdint>
#include <vector>

#include "core/model/strided_tree_random.hpp"

namespace forebay {
namespace {

TiledTree every(Bytes block, Bytes stride, Bytes displacement) {
  return {StridedTree::contiguous(block), displacement, stride};
}

/// By brute force, a count per byte.
Coverage count_bytes(std::span<const TiledPart> parts, Extent window) {
  std::vector<int> count(static_cast<std::size_t>(window.length), 0);
  for (const TiledPart& part : parts) {
    TreeCursor cursor(*part.tree);
    cursor.seek_data(part.data_start);
    for (Run run; cursor.next(part.data_end, window.end(), run);) {
      for (Bytes b = 0; b < run.bytes(); ++b) {
        const Bytes at = run.offset + b / run.block * run.stride + b % run.block;
        if (at >= window.offset) ++count[static_cast<std::size_t>(at - window.offset)];
      }
    }
  }
  Coverage result;
  for (Bytes i = 0; i < window.length; ++i) {
    if (count[static_cast<std::size_t>(i)] == 0) continue;
    result.overlapping = result.overlapping || count[static_cast<std::size_t>(i)] > 1;
    ++result.covered;
    if (result.extents.empty() || result.extents.back().end() < window.offset + i) {
      result.extents.push_back({window.offset + i, 0});
    }
    ++result.extents.back().length;
  }
  result.dense = result.covered == window.length;
  return result;
}

void expect_exact(std::span<const TiledPart> parts, Extent window, std::size_t extents_max) {
  const Coverage expected = count_bytes(parts, window);
  const Coverage found = coverage(parts, window, extents_max);
  RC_ASSERT(found.too_many == (expected.extents.size() > extents_max));
  if (found.too_many) {
    RC_ASSERT(found.extents.empty());
    RC_ASSERT(!found.dense);
    return;
  }
  RC_ASSERT(found.extents == expected.extents);
  RC_ASSERT(found.covered == expected.covered);
  RC_ASSERT(found.dense == expected.dense);
  RC_ASSERT(found.overlapping == expected.overlapping);
}

int draw(int low, int high) {
  return *rc::gen::resize(rc::kNominalSize, rc::gen::inRange(low, high + 1));
}

RC_GTEST_PROP(CoverageProperty, of_random_views_is_exact, ()) {
  std::vector<TiledTree> views;
  for (int n = draw(0, 5); n > 0; --n) views.push_back(draw_tiled(3, true, 1).tiled);
  std::vector<TiledPart> parts;
  parts.reserve(views.size());
  for (const TiledTree& view : views) {
    const Bytes start = draw(0, 20);
    parts.push_back({&view, start, start + draw(0, 2000)});
  }
  const Extent window{draw(0, 300), draw(1, 3000)};
  expect_exact(parts, window, *rc::gen::element<std::size_t>(4096, 4096, 10, 0));
}

// Pieces with one stride or a few, in phase or not, so that periods are merged often and go wrong
// if they can.
RC_GTEST_PROP(CoverageProperty, of_interleaved_views_is_exact, ()) {
  const Bytes unit = draw(1, 4);
  const Bytes lanes = draw(1, 8);
  const Bytes period = unit * lanes;
  std::vector<TiledTree> views;
  for (Bytes i = 0; i < lanes; ++i) {
    const bool odd = draw(0, 7) == 0;
    const Bytes block = odd ? draw(1, static_cast<int>(period)) : unit;
    const Bytes stride = draw(0, 9) == 0 ? 2 * period : period;
    const std::int64_t rows = draw(1, 30);
    const StridedTree tree = StridedTree::strided(rows, stride, StridedTree::contiguous(block));
    const Bytes extent = std::max(rows * stride + draw(0, 3) * unit, tree.upper());
    views.push_back({tree, i * unit + (odd ? draw(0, 9) : 0), extent});
  }
  std::vector<TiledPart> parts;
  parts.reserve(views.size());
  for (const TiledTree& view : views) parts.push_back({&view, draw(0, 9), draw(10, 4000)});
  expect_exact(parts, {draw(0, 100), draw(1, 4000)}, 4096);
}

// Every byte of a window belongs to a random one of a few ranks: dense, with no regularity at all,
// and more pieces than are merged one by one.
RC_GTEST_PROP(CoverageProperty, of_scattered_pieces_is_exact, ()) {
  const Bytes granule = *rc::gen::element<Bytes>(1, 4, 8);
  const auto seed = *rc::gen::arbitrary<std::uint32_t>();
  const auto keep = *rc::gen::element<std::uint32_t>(100, 100, 99);  // Percent.
  constexpr int pieces = 6000;
  std::vector<std::vector<Bytes>> offsets(3);
  std::uint32_t state = seed;
  for (Bytes i = 0; i < pieces; ++i) {
    state = state * 1664525U + 1013904223U;
    if ((state >> 8) % 100 < keep) offsets[(state >> 20) % 3].push_back(i * granule);
  }
  std::vector<TiledTree> views;
  for (const auto& mine : offsets) {
    const StridedTree tree = StridedTree::indexed(mine, std::vector<Bytes>(mine.size(), granule));
    views.push_back({tree, 0, pieces * granule});
  }
  std::vector<TiledPart> parts;
  parts.reserve(views.size());
  for (const TiledTree& view : views) parts.push_back({&view, 0, view.tree.size()});
  expect_exact(parts, {draw(0, 30), draw(1, pieces * static_cast<int>(granule))}, 4096);
}

// 1024 ranks take turns, 8 bytes each, over 128 GiB: any work per piece would never end.
TEST(Coverage, of_ranks_in_turn_is_dense_whatever_the_number_of_pieces) {
  constexpr Bytes ranks = 1024;
  std::vector<TiledTree> views;
  views.reserve(ranks);
  for (Bytes r = 0; r < ranks; ++r) views.push_back(every(8, 8 * ranks, 8 * r));
  std::vector<TiledPart> parts;
  parts.reserve(views.size());
  for (const TiledTree& view : views) parts.push_back({&view, 0, 128 * MiB});
  const Coverage all = coverage(parts, {12345, 100 * GiB});
  EXPECT_TRUE(all.dense);
  EXPECT_FALSE(all.overlapping);
  const Coverage end = coverage(parts, {12345, 200 * GiB});
  EXPECT_FALSE(end.dense);
  EXPECT_EQ(end.extents, (std::vector<Extent>{{12345, 128 * GiB - 12345}}));

  parts.pop_back();  // One rank stays away: a hole in every period.
  EXPECT_TRUE(coverage(parts, {12345, 100 * GiB}).too_many);
  const Coverage holes = coverage(parts, {0, 80 * ranks});
  EXPECT_EQ(holes.extents.size(), 10U);
  EXPECT_EQ(holes.covered, 80 * (ranks - 1));
}

// Lengths that add up to the window prove nothing.
TEST(Coverage, sees_an_overlap_that_makes_up_for_a_hole) {
  const TiledTree a = every(8, 32, 0);
  const TiledTree b = every(8, 32, 8);
  const TiledTree c = every(8, 32, 16);
  const TiledTree d = every(8, 32, 20);
  const std::vector<TiledPart> parts = {{&a, 0, MiB}, {&b, 0, MiB}, {&c, 0, MiB}, {&d, 0, MiB}};
  const Coverage found = coverage(parts, {0, 320});
  EXPECT_FALSE(found.dense);
  EXPECT_TRUE(found.overlapping);
  EXPECT_EQ(found.covered, 280);
  EXPECT_EQ(found.extents.size(), 10U);
}

TEST(Coverage, of_nothing_is_nothing) {
  const TiledTree view = every(8, 16, 1000);
  const std::vector<TiledPart> parts = {{&view, 0, 800}};
  const Coverage before = coverage(parts, {0, 1000});
  EXPECT_EQ(before.covered, 0);
  EXPECT_FALSE(before.dense);
  EXPECT_TRUE(before.extents.empty());
  EXPECT_EQ(coverage(parts, {1008, 8}).covered, 0);
  EXPECT_TRUE(coverage(parts, {1016, 8}).dense);
}

}  // namespace
}  // namespace forebay
