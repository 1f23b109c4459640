// What tracing costs a call: the same call through this library, with its events spilled to disk on
// the way, and straight to the C library, in turns. The bar is 150 ns (counter `added_ns`). The
// program is linked with the library, which comes before the C library then, as a preload does.

#include <benchmark/benchmark.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

namespace {

constexpr int calls_in_a_row = 2000;

/// The C library's own, past the library.
template <typename Function>
Function direct(const char* name) {
  return reinterpret_cast<Function>(::dlsym(::dlopen("libc.so.6", RTLD_NOLOAD | RTLD_LAZY), name));
}

template <typename Call>
double nanoseconds_a_call(Call call) {
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < calls_in_a_row; ++i) benchmark::DoNotOptimize(call());
  const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - start;
  return took.count() / calls_in_a_row;
}

double median(std::vector<double>& values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

template <typename Through, typename Straight>
void compare(benchmark::State& state, Through through, Straight straight) {
  std::vector<double> plain;
  std::vector<double> added;  // Of two turns that follow each other: the clock rate may change.
  for (auto _ : state) {
    const double traced = nanoseconds_a_call(through);
    plain.push_back(nanoseconds_a_call(straight));
    added.push_back(traced - plain.back());
  }
  state.counters["libc_ns"] = median(plain);
  state.counters["added_ns"] = median(added);
}

/// A file beside the spills, of which there is no more to say.
const char* path_of_a_file() {
  static const std::string path = [] {
    const std::string made = std::string(std::getenv("FOREBAY_TRACE_DIR")) + "/file";
    ::close(::open(made.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    return made;
  }();
  return path.c_str();
}

void pread_of_a_byte(benchmark::State& state) {
  const auto plain = direct<ssize_t (*)(int, void*, std::size_t, off_t)>("pread64");
  const int fd = ::open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
  char byte = 0;
  compare(state, [&] { return ::pread(fd, &byte, 1, 0); }, [&] { return plain(fd, &byte, 1, 0); });
  ::close(fd);
}
BENCHMARK(pread_of_a_byte)->Iterations(300);

/// The shortest way into the kernel: most of what is added shows.
void lseek_nowhere(benchmark::State& state) {
  const auto plain = direct<off_t (*)(int, off_t, int)>("lseek64");
  const int fd = ::open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
  compare(state, [&] { return ::lseek(fd, 0, SEEK_CUR); }, [&] { return plain(fd, 0, SEEK_CUR); });
  ::close(fd);
}
BENCHMARK(lseek_nowhere)->Iterations(300);

void stat_of_a_name(benchmark::State& state) {
  const auto plain = direct<int (*)(const char*, struct stat*)>("stat");
  struct stat status{};
  compare(
      state, [&] { return ::stat("/proc/self/exe", &status); },
      [&] { return plain("/proc/self/exe", &status); });
}
BENCHMARK(stat_of_a_name)->Iterations(100);

/// What an opening that is traced cannot do without, the system call that says which file it is:
/// nothing here is traced.
void fstat_after_open(benchmark::State& state) {
  const auto open = direct<int (*)(const char*, int, ...)>("open");
  const auto close = direct<int (*)(int)>("close");
  const char* path = path_of_a_file();
  struct stat status{};
  compare(
      state,
      [&] {
        const int fd = open(path, O_RDONLY);
        ::syscall(SYS_fstat, fd, &status);
        return close(fd);
      },
      [&] { return close(open(path, O_RDONLY)); });
}
BENCHMARK(fstat_after_open)->Iterations(300);

/// The closing goes past the library.
void open_of_a_file(benchmark::State& state) {
  const auto open = direct<int (*)(const char*, int, ...)>("open");
  const auto close = direct<int (*)(int)>("close");
  const char* path = path_of_a_file();
  compare(
      state, [&] { return close(::open(path, O_RDONLY)); },
      [&] { return close(open(path, O_RDONLY)); });
}
BENCHMARK(open_of_a_file)->Iterations(300);

void fopen_of_a_file(benchmark::State& state) {
  const auto open = direct<FILE* (*)(const char*, const char*)>("fopen");
  const auto close = direct<int (*)(FILE*)>("fclose");
  const char* path = path_of_a_file();
  compare(state, [&] { return close(::fopen(path, "r")); }, [&] { return close(open(path, "r")); });
}
BENCHMARK(fopen_of_a_file)->Iterations(300);

/// Two calls.
void open_and_close(benchmark::State& state) {
  const auto open = direct<int (*)(const char*, int, ...)>("open");
  const auto close = direct<int (*)(int)>("close");
  const char* path = "/proc/self/exe";
  compare(
      state, [&] { return ::close(::open(path, O_RDONLY)); },
      [&] { return close(open(path, O_RDONLY)); });
}
BENCHMARK(open_and_close)->Iterations(100);

/// Of text: each side has a stream of its own, or would find it moved by the other.
void fgets_of_a_line(benchmark::State& state) {
  const auto plain = direct<char* (*)(char*, int, FILE*)>("fgets");
  const char* path = "/proc/self/exe";
  FILE* traced = ::fopen(path, "r");
  FILE* other = ::fopen(path, "r");
  char line[16];
  compare(
      state, [&] { return ::fgets(line, sizeof line, traced); },
      [&] { return plain(line, sizeof line, other); });
  ::fclose(traced);
  ::fclose(other);
}
BENCHMARK(fgets_of_a_line)->Iterations(100);

/// Text of unknown length: the stream is asked where it stands, before and after.
void fscanf_of_a_word(benchmark::State& state) {
  const auto plain = direct<int (*)(FILE*, const char*, ...)>("__isoc99_fscanf");
  const auto write = direct<int (*)(const char*, FILE*)>("fputs");
  FILE* words = ::fopen(path_of_a_file(), "w");
  const auto calls = static_cast<int>(state.max_iterations) * calls_in_a_row;
  for (int i = 0; i < calls; ++i) write("word\n", words);
  ::fclose(words);
  FILE* traced = ::fopen(path_of_a_file(), "r");
  FILE* other = ::fopen(path_of_a_file(), "r");
  char word[16];
  compare(
      state, [&] { return ::fscanf(traced, "%15s", word); },
      [&] { return plain(other, "%15s", word); });
  ::fclose(traced);
  ::fclose(other);
}
BENCHMARK(fscanf_of_a_word)->Iterations(100);

void fprintf_of_a_number(benchmark::State& state) {
  const auto plain = direct<int (*)(FILE*, const char*, ...)>("fprintf");
  FILE* traced = ::fopen(path_of_a_file(), "w");
  FILE* other = ::fopen(path_of_a_file(), "w");
  compare(
      state, [&] { return ::fprintf(traced, "%d\n", 1000); },
      [&] { return plain(other, "%d\n", 1000); });
  ::fclose(traced);
  ::fclose(other);
}
BENCHMARK(fprintf_of_a_number)->Iterations(300);

/// Most are moved within the buffer.
void fputc_of_a_character(benchmark::State& state) {
  const auto plain = direct<int (*)(int, FILE*)>("fputc");
  FILE* traced = ::fopen(path_of_a_file(), "w");
  FILE* other = ::fopen(path_of_a_file(), "w");
  compare(state, [&] { return ::fputc('x', traced); }, [&] { return plain('x', other); });
  ::fclose(traced);
  ::fclose(other);
}
BENCHMARK(fputc_of_a_character)->Iterations(300);

/// A pipe is not traced.
void read_of_no_file(benchmark::State& state) {
  const auto plain = direct<ssize_t (*)(int, void*, std::size_t)>("read");
  int ends[2] = {-1, -1};
  if (::pipe2(ends, O_NONBLOCK) != 0) state.SkipWithError("there is no pipe");
  char byte = 0;
  compare(
      state, [&] { return ::read(ends[0], &byte, 1); }, [&] { return plain(ends[0], &byte, 1); });
  ::close(ends[0]);
  ::close(ends[1]);
}
BENCHMARK(read_of_no_file)->Iterations(300);

}  // namespace

/// The library looks for its directory when it is loaded: the program starts itself again with one.
int main(int argc, char** argv) {
  const char* directory = std::getenv("FOREBAY_TRACE_DIR");
  if (directory == nullptr) {
    std::string made = std::filesystem::temp_directory_path() / "traced-call-bench-XXXXXX";
    if (::mkdtemp(made.data()) == nullptr) return 1;
    ::setenv("FOREBAY_TRACE_DIR", made.c_str(), 1);
    ::execv("/proc/self/exe", argv);
    return 1;
  }
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  std::filesystem::remove_all(directory);
  return 0;
}
