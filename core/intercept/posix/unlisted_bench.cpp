// What interception costs a call whose descriptor is not read ahead: the same call through this
// library and straight to the C library, in turns. The bar is 20 ns (counter `added_ns`). The
// program is linked with the library, which comes before the C library then, as a preload does.
// Calls of a descriptor that does not exist are the shortest there are that enter the kernel; a C
// stream reads from its buffer. Other work of the machine only adds to a time, hence the least of
// all turns counts.

#include <benchmark/benchmark.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <limits>

namespace {

/// So few that most turns pass without the clock's interrupt, and so many that looking at the clock
/// does not count.
constexpr int calls_in_a_row = 100;
constexpr int turns = 4000;
constexpr int no_descriptor = 60'000;
constexpr std::size_t page = 4096;

/// The functions of one library.
struct Calls {
  decltype(&::read) read;
  decltype(&::pread) pread;
  decltype(&::readv) readv;
  decltype(&::lseek) lseek;
  decltype(&::fread) fread;
  decltype(&::fread_unlocked) fread_unlocked;
  decltype(&::dup) dup;
  decltype(&::close) close;
  int (*fcntl)(int, int, ...);
  decltype(&::mmap) mmap;
  decltype(&::munmap) munmap;
};

Calls ours() {
  return {::read, ::pread, ::readv, ::lseek, ::fread, ::fread_unlocked,
          ::dup,  ::close, ::fcntl, ::mmap,  ::munmap};
}

Calls of_libc() {
  void* const libc = ::dlopen("libc.so.6", RTLD_NOLOAD | RTLD_LAZY);
  Calls calls{};
  const auto find = [libc]<typename Function>(Function& function, const char* name) {
    function = reinterpret_cast<Function>(::dlsym(libc, name));
  };
  find(calls.read, "read");
  find(calls.pread, "pread");
  find(calls.readv, "readv");
  find(calls.lseek, "lseek");
  find(calls.fread, "fread");
  find(calls.fread_unlocked, "fread_unlocked");
  find(calls.dup, "dup");
  find(calls.close, "close");
  find(calls.fcntl, "fcntl");
  find(calls.mmap, "mmap");
  find(calls.munmap, "munmap");
  return calls;
}

char byte = 0;
iovec one_piece{&byte, 1};

struct Case {
  const char* name;
  int intercepted;  ///< Calls of ours in one call of `make`.
  void (*make)(const Calls& calls, int open, FILE* stream);
};

constexpr std::array<Case, 9> cases = {{
    {"read", 1, [](const Calls& calls, int, FILE*) { calls.read(no_descriptor, &byte, 1); }},
    {"pread", 1, [](const Calls& calls, int, FILE*) { calls.pread(no_descriptor, &byte, 1, 0); }},
    {"readv", 1, [](const Calls& calls, int, FILE*) { calls.readv(no_descriptor, &one_piece, 1); }},
    {"lseek", 1, [](const Calls& calls, int, FILE*) { calls.lseek(no_descriptor, 0, SEEK_CUR); }},
    {"fcntl", 1, [](const Calls& calls, int, FILE*) { calls.fcntl(no_descriptor, F_GETFD); }},
    {"fread", 1, [](const Calls& calls, int, FILE* stream) { calls.fread(&byte, 1, 1, stream); }},
    {"fread_unlocked", 1,
     [](const Calls& calls, int, FILE* stream) { calls.fread_unlocked(&byte, 1, 1, stream); }},
    {"dup_close", 2, [](const Calls& calls, int open, FILE*) { calls.close(calls.dup(open)); }},
    {"mmap_munmap", 2,
     [](const Calls& calls, int open, FILE*) {
       calls.munmap(calls.mmap(nullptr, page, PROT_READ, MAP_PRIVATE, open, 0), page);
     }},
}};

void unlisted(benchmark::State& state) {
  const Case& measured = cases[static_cast<std::size_t>(state.range(0))];
  state.SetLabel(measured.name);
  const Calls through = ours();
  const Calls straight = of_libc();
  if (straight.read == nullptr || straight.read == through.read) {
    state.SkipWithError("the library is not before the C library");
    return;
  }
  const int open = ::open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
  FILE* const stream = ::fopen("/dev/zero", "re");
  const auto nanoseconds_a_call = [&](const Calls& calls) {
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < calls_in_a_row; ++i) measured.make(calls, open, stream);
    const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - start;
    return took.count() / calls_in_a_row / measured.intercepted;
  };
  double with = std::numeric_limits<double>::max();
  double without = with;
  for (auto _ : state) {
    with = std::min(with, nanoseconds_a_call(through));
    without = std::min(without, nanoseconds_a_call(straight));
  }
  ::fclose(stream);
  ::close(open);
  state.counters["libc_ns"] = without;
  state.counters["added_ns"] = with - without;
}

BENCHMARK(unlisted)->DenseRange(0, cases.size() - 1)->Iterations(turns);

}  // namespace
