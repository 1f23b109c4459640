// Reads files that are read ahead in ways that meet: threads that open, read, copy and close, so
// that numbers of descriptors go from one to the other at once; a signal handler that reads while
// the program below it reads, or allocates; threads that are cancelled, about to read and on their
// way; more openings than there is memory for, of one file and of as many files. Every byte is a
// function of its place, and is checked.
//
// usage: many_readers make PATH | threads PATH | signals PATH | allocating PATH | cancelled PATH |
// openings PATH | make_files DIRECTORY | files DIRECTORY; status 1 and a message where a byte is
// wrong or a call fails.

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace {

constexpr off_t file_size = 3'000'000;

char byte_at(off_t offset) {
  return static_cast<char>((static_cast<std::uint64_t>(offset) * 0x9E3779B97F4A7C15U) >> 56U);
}

/// Async-signal-safe.
bool right(const char* bytes, ssize_t count, off_t offset) {
  for (ssize_t i = 0; i < count; ++i) {
    if (bytes[i] != byte_at(offset + i)) return false;
  }
  return true;
}

bool make(const char* path) {
  std::vector<char> bytes(file_size);
  for (off_t i = 0; i < file_size; ++i) bytes[static_cast<std::size_t>(i)] = byte_at(i);
  const int fd = ::open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  const bool whole = ::write(fd, bytes.data(), bytes.size()) == file_size;
  return ::close(fd) == 0 && whole;
}

/// What this process had from devices so far (proc(5)); 0 where the kernel does not tell.
off_t bytes_from_devices() {
  std::ifstream file("/proc/self/io");
  std::string key;
  off_t value = 0;
  while (file >> key >> value) {
    if (key == "read_bytes:") return value;
  }
  return 0;
}

/// Opens a file that is in no cache, and waits until its first blocks are on their way: what is
/// read of them then comes from memory. Where nothing shows that, until they should have been.
int open_ahead(const char* path) {
  using Clock = std::chrono::steady_clock;
  constexpr off_t first_blocks = 131072;
  constexpr std::chrono::seconds longest{2};
  const off_t before = bytes_from_devices();
  const int fd = ::open(path, O_RDONLY | O_CLOEXEC);
  const auto last = Clock::now() + longest;
  while (bytes_from_devices() < before + first_blocks && Clock::now() < last) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return fd;
}

/// From the beginning for a while, by read or pread, through a copy of the descriptor at times.
bool read_once(const char* path, std::mt19937& random) {
  const int opened = ::open(path, O_RDONLY | O_CLOEXEC);
  if (opened < 0) return false;
  int fd = opened;
  if (random() % 3 == 0) {
    fd = ::dup(opened);
    ::close(opened);
  }
  std::vector<char> bytes(1 + random() % 60'000);
  bool good = true;
  off_t at = 0;
  for (int i = 0; i < 20 && good; ++i) {
    const bool by_position = random() % 2 == 0;
    if (by_position) ::lseek(fd, at, SEEK_SET);
    const ssize_t count = by_position ? ::read(fd, bytes.data(), bytes.size())
                                      : ::pread(fd, bytes.data(), bytes.size(), at);
    good = count >= 0 && right(bytes.data(), count, at);
    at = (at + count) % file_size;
  }
  return ::close(fd) == 0 && good;
}

bool threads(const char* path) {
  const int ahead = open_ahead(path);
  std::atomic<bool> good{true};
  std::vector<std::thread> readers;
  for (unsigned seed = 0; seed < 8; ++seed) {
    readers.emplace_back([&, seed] {
      std::mt19937 random(seed);
      std::array<char, 1000> bytes{};
      const off_t at = off_t{seed} * 1000;
      const ssize_t count = ::pread(ahead, bytes.data(), bytes.size(), at);
      if (count != 1000 || !right(bytes.data(), count, at)) good = false;
      for (int i = 0; i < 60 && good; ++i) {
        if (!read_once(path, random)) good = false;
      }
    });
  }
  for (std::thread& reader : readers) reader.join();
  return ::close(ahead) == 0 && good;
}

volatile sig_atomic_t handler_fd = -1;
volatile sig_atomic_t handler_reads = 0;
volatile sig_atomic_t handler_failed = 0;

void read_in_handler(int) {
  const int before = errno;
  char bytes[512];
  const off_t offset = (handler_reads * 4099) % (file_size - 512);
  const ssize_t count = ::pread(handler_fd, bytes, sizeof bytes, offset);
  if (count != sizeof bytes || !right(bytes, count, offset)) handler_failed = 1;
  handler_reads = handler_reads + 1;
  errno = before;
}

/// While a signal handler reads, so often that it has read the file about once.
template <typename Work>
bool interrupted(const char* path, Work work) {
  handler_fd = open_ahead(path);
  struct sigaction action{};
  action.sa_handler = read_in_handler;
  action.sa_flags = SA_RESTART;
  ::sigaction(SIGALRM, &action, nullptr);
  ::raise(SIGALRM);
  const itimerval often{{0, 200}, {0, 200}};
  ::setitimer(ITIMER_REAL, &often, nullptr);
  bool good = true;
  while (good && handler_reads < 2000 && handler_failed == 0) good = work();
  const itimerval never{};
  ::setitimer(ITIMER_REAL, &never, nullptr);
  return good && handler_failed == 0;
}

bool signals(const char* path) {
  std::mt19937 random(1);
  return interrupted(path, [&] { return read_once(path, random); });
}

/// The handler interrupts malloc and free, which must not be entered once more then.
bool allocating(const char* path) {
  std::mt19937 random(1);
  std::array<std::vector<unsigned char>, 64> held;
  return interrupted(path, [&] {
    std::vector<unsigned char>& one = held[random() % held.size()];
    const std::size_t size = one.size();
    const auto is_whole = [&](unsigned char byte) { return byte == (size & 0xFFU); };
    if (!std::ranges::all_of(one, is_whole)) return false;
    // As the allocator has them at hand, in its bins, and beyond what a thread keeps for itself.
    const std::size_t next = 1 + random() % (random() % 4 == 0 ? 5000 : 300);
    one = std::vector<unsigned char>(next, static_cast<unsigned char>(next));
    return true;
  });
}

/// A way of reading one byte by a descriptor or a stream, which is a cancellation point
/// (pthreads(7)).
struct Way {
  const char* name;
  ssize_t (*read)(int fd, FILE* stream);
};

char one_byte = 0;
iovec one_piece{&one_byte, 1};

constexpr std::array<Way, 8> ways = {{
    {"read", [](int fd, FILE*) { return ::read(fd, &one_byte, 1); }},
    {"pread", [](int fd, FILE*) { return ::pread(fd, &one_byte, 1, 5); }},
    {"readv", [](int fd, FILE*) { return ::readv(fd, &one_piece, 1); }},
    {"preadv", [](int fd, FILE*) { return ::preadv(fd, &one_piece, 1, 5); }},
    {"preadv2", [](int fd, FILE*) { return ::preadv2(fd, &one_piece, 1, -1, 0); }},
    {"fread", [](int, FILE* at) { return static_cast<ssize_t>(std::fread(&one_byte, 1, 1, at)); }},
    {"fgetc", [](int, FILE* at) { return static_cast<ssize_t>(std::fgetc(at)); }},
    {"fread_unlocked",
     [](int, FILE* at) { return static_cast<ssize_t>(::fread_unlocked(&one_byte, 1, 1, at)); }},
}};

struct Doomed {
  const Way* way;
  int fd;
  FILE* stream;
};

/// Cancels itself, which shows in the next call that is a cancellation point.
void* read_cancelled(void* argument) {
  const auto& doomed = *static_cast<Doomed*>(argument);
  ::pthread_cancel(::pthread_self());
  doomed.way->read(doomed.fd, doomed.stream);
  return nullptr;
}

std::atomic<int> readers_on_their_way{0};

void* read_for_ever(void* path) {
  std::mt19937 random(static_cast<unsigned>(readers_on_their_way.load()));
  bool good = read_once(static_cast<char*>(path), random);
  ++readers_on_their_way;
  readers_on_their_way.notify_one();
  while (good) good = read_once(static_cast<char*>(path), random);
  return nullptr;
}

bool ends_cancelled(pthread_t thread) {
  void* result = nullptr;
  return ::pthread_join(thread, &result) == 0 && result == PTHREAD_CANCELED;
}

bool cancelled(char* path) {
  for (const Way& way : ways) {
    Doomed doomed{&way, ::open(path, O_RDONLY | O_CLOEXEC), std::fopen(path, "re")};
    pthread_t thread{};
    if (doomed.stream == nullptr ||
        ::pthread_create(&thread, nullptr, read_cancelled, &doomed) != 0 ||
        !ends_cancelled(thread) || ::lseek(doomed.fd, 0, SEEK_CUR) != 0) {
      std::fprintf(stderr, "%s was no cancellation point\n", way.name);
      return false;
    }
    ::close(doomed.fd);
  }
  constexpr int rounds = 40;
  for (int round = 1; round <= rounds; ++round) {
    pthread_t thread{};
    if (::pthread_create(&thread, nullptr, read_for_ever, path) != 0) return false;
    readers_on_their_way.wait(round - 1);
    if (::pthread_cancel(thread) != 0 || !ends_cancelled(thread)) return false;
  }
  std::mt19937 random(0);
  return read_once(path, random);
}

/// As many files as may be open, up to `wanted`.
std::size_t may_be_open(std::size_t wanted) {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
  return limit.rlim_cur < wanted + 1000 ? limit.rlim_cur - 500 : wanted;
}

constexpr std::size_t files_made = 10'000;
/// Of smaller ones nothing is told to other processes.
constexpr off_t small_file_size = 1 << 20;

std::string file_of(const std::string& directory, std::size_t number) {
  return directory + "/" + std::to_string(number);
}

/// Holes, but for the last bytes of each.
bool make_files(const char* directory) {
  std::array<char, 100> bytes{};
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = byte_at(small_file_size - static_cast<off_t>(bytes.size() - i));
  }
  for (std::size_t number = 0; number < files_made; ++number) {
    const int fd = ::open(file_of(directory, number).c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    const auto size = static_cast<ssize_t>(bytes.size());
    const bool whole = ::pwrite(fd, bytes.data(), bytes.size(), small_file_size - size) == size;
    if (::close(fd) != 0 || !whole) return false;
  }
  return true;
}

/// All open at a time. Says how many.
bool files(const char* directory) {
  std::vector<int> all;
  while (all.size() < may_be_open(files_made)) {
    const int fd = ::open(file_of(directory, all.size()).c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) return false;
    all.push_back(fd);
  }
  std::printf("%zu\n", all.size());
  std::array<char, 100> bytes{};
  for (const int fd : all) {
    if (::pread(fd, bytes.data(), bytes.size(), 5000) != 100 || bytes[0] != 0) return false;
    const off_t offset = small_file_size - static_cast<off_t>(bytes.size());
    if (!right(bytes.data(), ::pread(fd, bytes.data(), bytes.size(), offset), offset)) return false;
  }
  return std::ranges::all_of(all, [](int fd) { return ::close(fd) == 0; });
}

/// The same of one file.
bool openings(const char* path) {
  const std::size_t most = may_be_open(10'000);
  std::vector<int> all;
  std::vector<char> bytes(1000);
  while (all.size() < most) {
    const int fd = ::open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return false;
    all.push_back(fd);
  }
  std::printf("%zu\n", all.size());
  bool good = true;
  for (std::size_t i = 0; i < all.size() && good; ++i) {
    const auto offset = static_cast<off_t>(i * 283);
    const ssize_t count = ::pread(all[i], bytes.data(), bytes.size(), offset);
    good = count == 1000 && right(bytes.data(), count, offset);
  }
  for (const int fd : all) ::close(fd);
  return good;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const std::string what = argv[1];
  bool good = false;
  if (what == "make") good = make(argv[2]);
  if (what == "threads") good = threads(argv[2]);
  if (what == "signals") good = signals(argv[2]);
  if (what == "allocating") good = allocating(argv[2]);
  if (what == "cancelled") good = cancelled(argv[2]);
  if (what == "openings") good = openings(argv[2]);
  if (what == "make_files") good = make_files(argv[2]);
  if (what == "files") good = files(argv[2]);
  if (!good) std::fprintf(stderr, "%s: failed, errno %s\n", what.c_str(), std::strerror(errno));
  return good ? 0 : 1;
}
