// What appending to a log takes, with compression and without, on the device that TMPDIR is on:
// whether lz4 pays there. Payloads of 1 MiB; the log is given back every 256 MiB, as a flush does.
// `synced` makes each 64 MiB durable on the device, which is then what limits.
//
// And what a program's next log takes: 64 MiB into new segments, and into those of the log before.

#include <benchmark/benchmark.h>
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <random>
#include <string>

#include "core/engine/cache/log_directory.hpp"
#include "core/engine/cache/log_writer.hpp"
#include "core/engine/cache/segment_reserve.hpp"

namespace forebay {
namespace {

constexpr Bytes write_bytes = 1 * MiB;
constexpr int writes = 64;  ///< Of one iteration.

enum Data : std::int64_t { noise, field, table };

/// Random bytes; a smooth field in doubles, whose low digits are noise; a table of small integers.
std::vector<std::byte> make_data(std::int64_t kind) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(write_bytes) * 8);
  std::mt19937_64 random(5);
  for (std::size_t at = 0; at < bytes.size(); at += 8) {
    std::uint64_t word = random();
    if (kind == field) {
      const double x = static_cast<double>(at) * 1e-5;
      const double value = std::sin(x) * std::exp(-x / 100);
      std::memcpy(&word, &value, sizeof(word));
    }
    if (kind == table) word %= 1000;
    std::memcpy(bytes.data() + at, &word, sizeof(word));
  }
  return bytes;
}

void append(benchmark::State& state, bool synced) {
  const char* place = std::getenv("TMPDIR");
  const std::string local = place != nullptr ? place : "/tmp";
  const auto directory = CacheDirectory::open(local, CacheDirectory::Access::create);
  auto store = LogDirectory::create(*directory, "bench-" + std::to_string(::getpid()));
  if (!store) {
    state.SkipWithError(store.error().what.c_str());
    return;
  }
  LogIdentity identity;
  identity.log = "bench";
  LogWriter writer(std::move(*store), identity,
                   {64 * MiB, write_bytes, static_cast<Toggle>(state.range(1))},
                   *ResourceHolder::join(std::make_shared<Resource>("cache.local", GiB)),
                   [](const LogRecord&, const LogPlace&) {});
  const std::vector<std::byte> data = make_data(state.range(0));
  Bytes offset = 0;
  Bytes since = 0;
  for (auto _ : state) {
    for (int i = 0; i < writes; ++i, offset += write_bytes) {
      const auto at = static_cast<std::size_t>(offset) % data.size();
      const iovec piece{const_cast<std::byte*>(data.data()) + at,
                        static_cast<std::size_t>(write_bytes)};
      if (!writer.append({&piece, 1}, offset, 1).status) state.SkipWithError("append");
    }
    if (synced && !writer.sync()) state.SkipWithError("sync");
    since += writes * write_bytes;
    if (since < 256 * MiB) continue;
    state.PauseTiming();
    if (!writer.flushed(1, writer.last_sequence())) state.SkipWithError("flushed");
    since = 0;
    state.ResumeTiming();
  }
  state.SetBytesProcessed(state.iterations() * writes * write_bytes);
  state.counters["stored"] =
      static_cast<double>(writer.bytes()) / static_cast<double>(writer.payload_bytes());
  if (!writer.destroy()) state.SkipWithError("destroy");
}

/// What a flush does with the log when it was written.
bool flush(LogWriter& writer) {
  std::vector<std::byte> buffer;
  LogGrowth growth = writer.grown({});
  for (const LogRun& run : growth.runs) {
    const auto bytes = run.segment->bytes(run.begin, run.length(), buffer);
    if (!bytes) return false;
    for (std::size_t at = 0; at < bytes->size(); at += 64) benchmark::DoNotOptimize((*bytes)[at]);
  }
  growth.runs.clear();  // A segment that somebody may read is not used again.
  return writer.release(writer.last_sequence()) && writer.flushed(1, writer.last_sequence());
}

void next_log(benchmark::State& state) {
  const char* place = std::getenv("TMPDIR");
  const auto directory =
      CacheDirectory::open(place != nullptr ? place : "/tmp", CacheDirectory::Access::create);
  const auto capacity = std::make_shared<Resource>("cache.local", 8 * GiB);
  std::shared_ptr<SegmentReserve> reserve;
  if (state.range(0) != 0) {
    keep_segments();
    reserve = segment_reserve(*directory);
    if (reserve != nullptr) reserve->use(capacity);
  }
  const std::vector<std::byte> data = make_data(noise);
  int number = 0;
  for (auto _ : state) {
    LogIdentity identity;
    identity.log = "bench-" + std::to_string(::getpid()) + "-" + std::to_string(number++);
    auto store = LogDirectory::create(*directory, identity.log);
    if (!store) {
      state.SkipWithError(store.error().what.c_str());
      return;
    }
    LogWriter writer(std::move(*store), identity, {32 * MiB, write_bytes, Toggle::disable, reserve},
                     *ResourceHolder::join(capacity), [](const LogRecord&, const LogPlace&) {});
    writer.prepare();
    for (int i = 0; i < writes; ++i) {
      const auto at = static_cast<std::size_t>(i * write_bytes) % data.size();
      const iovec piece{const_cast<std::byte*>(data.data()) + at,
                        static_cast<std::size_t>(write_bytes)};
      if (!writer.append({&piece, 1}, i * write_bytes, 1).status) state.SkipWithError("append");
    }
    state.PauseTiming();
    if (!flush(writer) || !writer.destroy()) state.SkipWithError("flush");
    state.ResumeTiming();
  }
  state.SetBytesProcessed(state.iterations() * writes * write_bytes);
  close_segment_reserves();
}

/// All data, compressed and not.
void each_way(benchmark::internal::Benchmark* bench) {
  bench->ArgNames({"data", "compress"})
      ->ArgsProduct(
          {{noise, field, table},
           {static_cast<std::int64_t>(Toggle::automatic), static_cast<std::int64_t>(Toggle::enable),
            static_cast<std::int64_t>(Toggle::disable)}})
      ->UseRealTime();
}

BENCHMARK(next_log)->ArgName("reuse")->Arg(0)->Arg(1)->UseRealTime();
BENCHMARK_CAPTURE(append, plain, false)->Apply(each_way);
BENCHMARK_CAPTURE(append, synced, true)->Apply(each_way);

}  // namespace
}  // namespace forebay
