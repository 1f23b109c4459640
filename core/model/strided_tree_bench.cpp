// What a walk costs per run and per piece, and what a seek costs.

#include <benchmark/benchmark.h>

#include <random>
#include <vector>

#include "core/model/strided_tree.hpp"

namespace forebay {
namespace {

StridedTree vector_of(std::int64_t count, Bytes stride, Bytes block) {
  return StridedTree::strided(count, stride, StridedTree::contiguous(block));
}

/// 8 of every 16 bytes, in windows of 1 MiB.
TiledTree interleaved() { return {StridedTree::contiguous(8), 0, 16}; }

/// A 4-D block: rows of 4 pieces of 32 bytes.
TiledTree lattice() {
  const StridedTree rows = vector_of(4, 64, 32);
  return {StridedTree::strided(1000, 1 << 20, StridedTree::strided(64, 4096, rows)), 0, 1 << 30};
}

/// A million pieces of 8 bytes at irregular distances.
TiledTree irregular() {
  // NOLINTNEXTLINE(bugprone-random-generator-seed): every run measures the same pieces.
  std::mt19937_64 random(1);
  std::vector<Bytes> offsets;
  Bytes next = 0;
  for (int i = 0; i < 1'000'000; ++i) {
    offsets.push_back(next);
    next += 16 + 8 * static_cast<Bytes>(random() % 8);
  }
  const std::vector<Bytes> lengths(offsets.size(), 8);
  return {StridedTree::indexed(offsets, lengths), 0, next};
}

void walk(benchmark::State& state, const TiledTree& view) {
  TreeCursor cursor(view);
  std::int64_t pieces = 0;
  std::int64_t runs = 0;
  constexpr Bytes window = 1 << 20;
  constexpr Bytes data = 8'000'000;
  for (auto _ : state) {
    cursor.seek_data(0);
    Run run;
    for (Bytes end = window; cursor.data_position() < data; end += window) {
      while (cursor.next(data, end, run)) {
        pieces += run.count;
        ++runs;
        benchmark::DoNotOptimize(run);
      }
    }
  }
  state.counters["pieces"] =
      benchmark::Counter(static_cast<double>(pieces), benchmark::Counter::kIsRate);
  state.counters["s_per_run"] = benchmark::Counter(
      static_cast<double>(runs), benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}
BENCHMARK_CAPTURE(walk, interleaved, interleaved());
BENCHMARK_CAPTURE(walk, lattice, lattice());
BENCHMARK_CAPTURE(walk, irregular, irregular());

void seek(benchmark::State& state, const TiledTree& view) {
  TreeCursor cursor(view);
  Bytes offset = 0;
  for (auto _ : state) {
    offset = (offset + 7'654'321) % 30'000'000;
    cursor.seek_offset(offset);
    benchmark::DoNotOptimize(cursor.data_position());
  }
}
BENCHMARK_CAPTURE(seek, interleaved, interleaved());
BENCHMARK_CAPTURE(seek, lattice, lattice());
BENCHMARK_CAPTURE(seek, irregular, irregular());

void count_before(benchmark::State& state) {
  const TiledTree view = lattice();
  Bytes offset = 0;
  for (auto _ : state) {
    offset = (offset + 7'654'321) % 30'000'000;
    benchmark::DoNotOptimize(data_before(view, offset));
  }
}
BENCHMARK(count_before);

void make_cursor(benchmark::State& state) {
  const TiledTree view = lattice();
  for (auto _ : state) benchmark::DoNotOptimize(TreeCursor(view).data_position());
}
BENCHMARK(make_cursor);

}  // namespace
}  // namespace forebay
