// What it takes to read what is only in the log, in requests of one size, one behind the other or
// at random. The log lies in the directory that TMPDIR names: on /dev/shm it is read where it lies
// in memory, elsewhere by system calls. 64 MiB, in payloads of the second argument.

#include <benchmark/benchmark.h>
#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <random>
#include <string>

#include "core/engine/cache/cached_file.hpp"
#include "core/engine/cache/log_directory.hpp"

namespace forebay {
namespace {

constexpr Bytes file_bytes = 64 * MiB;

std::unique_ptr<CachedFile> written_file(Bytes payload_bytes, Counters& counters) {
  const char* place = std::getenv("TMPDIR");
  const std::string local = place != nullptr ? place : "/tmp";
  const std::string name = "bench-" + std::to_string(::getpid());
  const auto directory = CacheDirectory::open(local, CacheDirectory::Access::create);
  auto store = LogDirectory::create(*directory, name);
  Descriptor descriptor(::open(local.c_str(), O_TMPFILE | O_RDWR, 0600));
  if (!store || !descriptor.valid()) return nullptr;
  CacheOptions options;
  options.announce = false;
  options.flush = CacheFlush::onclose;
  options.log = {32 * MiB, payload_bytes, Toggle::disable};
  LogIdentity identity;
  identity.log = name;
  auto file = CachedFile::open(
      adopt_posix_file(std::move(descriptor), OpenMode::read_write, "bench", counters),
      std::move(*store), identity, std::make_shared<Resource>("cache.local", GiB), options);
  if (!file) return nullptr;
  std::mt19937_64 random(5);
  std::vector<std::byte> bytes(static_cast<std::size_t>(MiB));
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  for (Bytes at = 0; at < file_bytes; at += MiB) {
    if (!(*file)->write_at(bytes, at)) return nullptr;
  }
  return std::move(*file);
}

void read(benchmark::State& state, bool at_random) {
  const Bytes request = state.range(0);
  Counters counters;
  const auto file = written_file(state.range(1), counters);
  if (file == nullptr) {
    state.SkipWithError("no file");
    return;
  }
  std::vector<std::byte> bytes(static_cast<std::size_t>(request));
  std::mt19937_64 random(7);
  Bytes offset = 0;
  for (auto _ : state) {
    if (!file->read_at(bytes, offset)) state.SkipWithError("read");
    const auto requests = static_cast<std::uint64_t>(file_bytes / request);
    const Bytes next =
        at_random ? static_cast<Bytes>(random() % requests) * request : offset + request;
    offset = next % file_bytes;
  }
  state.SetBytesProcessed(state.iterations() * request);
  if (!file->discard()) state.SkipWithError("discard");
}

void sizes(benchmark::internal::Benchmark* bench) {
  bench->ArgNames({"request", "payload"})
      ->ArgsProduct({{4 * KiB, 64 * KiB, 1 * MiB}, {256 * KiB, 1 * MiB}})
      ->UseRealTime();
}

BENCHMARK_CAPTURE(read, in_order, false)->Apply(sizes);
BENCHMARK_CAPTURE(read, at_random, true)->Apply(sizes);

}  // namespace
}  // namespace forebay
