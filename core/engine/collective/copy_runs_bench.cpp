// What the copies cost per piece: pieces of one length in the file, at twice their length apart,
// and memory contiguous, strided alike, or in blocks that do not correspond.

#include <benchmark/benchmark.h>

#include <cstdint>
#include <vector>

#include "core/engine/collective/copy_runs.hpp"

namespace forebay {
namespace {

constexpr Bytes data_bytes = 2 * MiB;

enum Memory : std::int64_t { contiguous, alike, unlike };

void copy(benchmark::State& state, Direction direction) {
  const Bytes block = state.range(0);
  const TiledTree view{StridedTree::contiguous(block), 0, 2 * block};
  std::vector<std::byte> image(2 * data_bytes);
  std::vector<std::byte> buffer(3 * data_bytes);
  TiledTree memory{StridedTree::contiguous(block), reinterpret_cast<std::intptr_t>(buffer.data()),
                   block};
  if (state.range(1) == alike) memory.extent = 2 * block;
  if (state.range(1) == unlike) {
    memory.tree = StridedTree::contiguous(3 * block + 1);
    memory.extent = 4 * block + 3;
  }
  TreeCursor file(view);
  TreeCursor walk(memory);
  for (auto _ : state) {
    file.seek_data(0);
    walk.seek_data(0);
    for (Run run; file.next(data_bytes, run);) copy_run(walk, run, image.data(), 0, direction);
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * data_bytes);
  const std::int64_t pieces = state.iterations() * (data_bytes / block);
  state.counters["s_per_piece"] = benchmark::Counter(
      static_cast<double>(pieces), benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}
BENCHMARK_CAPTURE(copy, gather, Direction::gather)
    ->ArgsProduct({{8, 40, 56, 4096}, {contiguous, alike, unlike}});
BENCHMARK_CAPTURE(copy, scatter, Direction::scatter)
    ->ArgsProduct({{8, 40, 56, 4096}, {contiguous, alike, unlike}});

/// Rows of four pieces of 32 bytes: a run is short, so that the walk shows.
void copy_short_runs(benchmark::State& state) {
  const StridedTree rows = StridedTree::strided(4, 64, StridedTree::contiguous(32));
  const TiledTree view{StridedTree::strided(1 << 14, 256, rows), 0, 1 << 22};
  const TiledTree far{StridedTree::strided(1 << 14, 264, rows), 0, 1 << 24};
  std::vector<std::byte> image(5 * data_bytes);
  std::vector<std::byte> buffer(data_bytes);
  TreeCursor file(state.range(0) == 0 ? view : far);
  TreeCursor walk({StridedTree::contiguous(1), reinterpret_cast<std::intptr_t>(buffer.data()), 1});
  for (auto _ : state) {
    file.seek_data(0);
    walk.seek_data(0);
    for (Run run; file.next(data_bytes, run);) {
      copy_run(walk, run, image.data(), 0, Direction::gather);
    }
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * data_bytes);
}
BENCHMARK(copy_short_runs)->Arg(0)->Arg(1);

}  // namespace
}  // namespace forebay
