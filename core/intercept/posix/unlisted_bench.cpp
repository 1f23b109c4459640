// What interception costs a call whose descriptor is not read ahead: the same call through this
// library and straight to the C library, in turns. The bar is 20 ns (counter `added_ns`). The
// program is linked with the library, which comes before the C library then, as a preload does.
// read() of a descriptor that does not exist is the shortest call there is that enters the kernel.

#include <benchmark/benchmark.h>
#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <vector>

namespace {

constexpr int calls_in_a_row = 2000;
constexpr int no_descriptor = 60'000;

using Read = ssize_t (*)(int, void*, std::size_t);

double nanoseconds_a_call(Read read) {
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < calls_in_a_row; ++i) {
    char byte = 0;
    benchmark::DoNotOptimize(read(no_descriptor, &byte, 1));
  }
  const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - start;
  return took.count() / calls_in_a_row;
}

double median(std::vector<double>& values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

void unlisted_read(benchmark::State& state) {
  void* libc = ::dlopen("libc.so.6", RTLD_NOLOAD | RTLD_LAZY);
  const auto direct = reinterpret_cast<Read>(::dlsym(libc, "read"));
  if (direct == nullptr || direct == static_cast<Read>(::read)) {
    state.SkipWithError("the library is not before the C library");
    return;
  }
  std::vector<double> through;
  std::vector<double> straight;
  for (auto _ : state) {
    through.push_back(nanoseconds_a_call(::read));
    straight.push_back(nanoseconds_a_call(direct));
  }
  state.counters["libc_ns"] = median(straight);
  state.counters["added_ns"] = median(through) - state.counters["libc_ns"];
}
BENCHMARK(unlisted_read)->Iterations(500);

}  // namespace
