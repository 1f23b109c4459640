// What it costs to find out that a window of 4 MiB is covered without a hole.

#include <benchmark/benchmark.h>

#include <random>
#include <vector>

#include "core/plan/coverage.hpp"

namespace forebay {
namespace {

constexpr Bytes window_bytes = 4 * MiB;

void measure(benchmark::State& state, const std::vector<TiledTree>& views) {
  std::vector<TiledPart> parts;
  parts.reserve(views.size());
  for (const TiledTree& view : views) parts.push_back({&view, 0, GiB});
  for (auto _ : state) {
    const Coverage found = coverage(parts, {100 * window_bytes, window_bytes});
    if (!found.dense) state.SkipWithError("the window has holes");
  }
}

/// Ranks with 8-byte pieces in turn.
void in_turn(benchmark::State& state) {
  std::vector<TiledTree> views;
  views.reserve(static_cast<std::size_t>(state.range(0)));
  for (Bytes r = 0; r < state.range(0); ++r) {
    views.push_back({StridedTree::contiguous(8), 8 * r, 8 * state.range(0)});
  }
  measure(state, views);
}
BENCHMARK(in_turn)->Arg(2)->Arg(64)->Arg(1024);

/// An array of rows of 16 KiB, planes of 1 MiB: every rank has a block of 4 rows of 4 KiB.
void blocks(benchmark::State& state) {
  std::vector<TiledTree> views;
  for (Bytes y = 0; y < 16; ++y) {
    for (Bytes x = 0; x < 4; ++x) {
      views.push_back({StridedTree::strided(4, 16 * KiB, StridedTree::contiguous(4 * KiB)),
                       y * 64 * KiB + x * 4 * KiB, MiB});
    }
  }
  measure(state, views);
}
BENCHMARK(blocks);

/// Two ranks that own 8-byte pieces at random.
void scattered(benchmark::State& state) {
  // NOLINTNEXTLINE(bugprone-random-generator-seed): every run measures the same pieces.
  std::mt19937_64 random(1);
  std::vector<std::vector<Bytes>> offsets(2);
  for (Bytes i = 0; i < window_bytes / 8; ++i) offsets[random() % 2].push_back(8 * i);
  std::vector<TiledTree> views;
  views.reserve(offsets.size());
  for (const auto& mine : offsets) {
    views.push_back(
        {StridedTree::indexed(mine, std::vector<Bytes>(mine.size(), 8)), 0, window_bytes});
  }
  measure(state, views);
}
BENCHMARK(scattered);

}  // namespace
}  // namespace forebay
