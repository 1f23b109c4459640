// Goal: what a signal handler does with files that are read ahead hangs no program and loses
// nothing: it closes them and forks while the program below is in malloc or in such a call itself.
// Nor does a handler need a larger stack to open a file that nobody declared.
//
// usage: handlers FILE FORKS UNDECLARED
// Opens, reads and closes UNDECLARED in a handler with a small stack of its own. Then reads FILE,
// which is declared, over and over by the thread that the signals interrupt, each time by an
// opening of its own and by one that stays, beside allocations; a handler does the same, closes a
// descriptor that was left for it, and forks as many times. Ends with status 0 if all bytes were
// right.

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace {

constexpr std::size_t piece = 8192;
std::array<char, piece> first;
const char* path = nullptr;
std::atomic<int> left_open{-1};
std::atomic<int> forks{0};
std::atomic<bool> failed{false};
/// Open from the beginning to the end. What the program does with it a handler does, too.
int common = -1;
/// Then a handler must not call fork(): it waits for malloc's locks in every program that has a
/// thread, hence in each that is read ahead (fork(2)).
std::atomic<bool> is_allocating{false};

void read_once() {
  const int file = ::open(path, O_RDONLY | O_CLOEXEC);
  std::array<char, piece> found{};
  if (::read(file, found.data(), piece) != static_cast<ssize_t>(piece) ||
      std::memcmp(found.data(), first.data(), piece) != 0) {
    failed = true;
  }
  ::close(file);
}

void read_common() {
  std::array<char, piece> found{};
  if (::lseek(common, 0, SEEK_CUR) != 0 ||
      ::pread(common, found.data(), piece, 0) != static_cast<ssize_t>(piece) ||
      std::memcmp(found.data(), first.data(), piece) != 0) {
    failed = true;
  }
}

void arm() {
  const itimerval soon{{0, 0}, {0, 500}};
  ::setitimer(ITIMER_REAL, &soon, nullptr);
}

void on_alarm(int /*signal*/) {
  const int before = errno;
  const int left = left_open.exchange(-1);
  if (left >= 0) ::close(left);
  read_once();
  read_common();
  if (forks.load() > 0) {
    --forks;
    const pid_t child = is_allocating.load() ? ::_Fork() : ::fork();
    if (child == 0) {
      read_once();
      ::_exit(failed.load() ? 1 : 0);
    }
    int status = 0;
    while (::waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
    if (status != 0) failed = true;
  }
  arm();  // Once it is done, however long it took: else nothing but handlers would run.
  errno = before;
}

/// A file that nobody declared, and whether its beginning could be read.
const char* undeclared = nullptr;
std::atomic<bool> was_read{false};

void read_undeclared(int /*signal*/) {
  const int file = ::open(undeclared, O_RDONLY | O_CLOEXEC);
  char byte = 0;
  const bool has_byte = ::read(file, &byte, 1) == 1;
  was_read = ::close(file) == 0 && has_byte;
}

/// In a handler whose stack is the least that the kernel's frame and a few calls want. What goes
/// beyond it meets pages that may not be touched.
bool is_read_on_small_stack() {
  constexpr auto guard = std::size_t{64} * 1024;  // More than the frame of any function.
  const auto room = static_cast<std::size_t>(std::max(8192L, ::sysconf(_SC_MINSIGSTKSZ) + 4096));
  void* const place = ::mmap(nullptr, guard + room, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (place == MAP_FAILED) return false;
  stack_t small{};
  small.ss_sp = static_cast<char*>(place) + guard;
  small.ss_size = room;
  struct sigaction action{};
  action.sa_handler = read_undeclared;
  action.sa_flags = SA_ONSTACK;
  if (::mprotect(small.ss_sp, room, PROT_READ | PROT_WRITE) != 0 ||
      ::sigaltstack(&small, nullptr) != 0 || ::sigaction(SIGUSR1, &action, nullptr) != 0) {
    return false;
  }
  read_undeclared(0);  // The dynamic linker, which finds functions, wants more stack than they do.
  const bool is_readable = was_read.exchange(false);
  return is_readable && ::raise(SIGUSR1) == 0 && was_read.load();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  path = argv[1];
  forks = std::atoi(argv[2]);
  undeclared = argv[3];
  common = ::open(path, O_RDONLY | O_CLOEXEC);
  if (::pread(common, first.data(), piece, 0) != static_cast<ssize_t>(piece)) return 2;
  if (!is_read_on_small_stack()) {
    std::puts("not read on a small stack");
    return 1;
  }
  struct sigaction action{};
  action.sa_handler = on_alarm;
  action.sa_flags = SA_RESTART;
  ::sigaction(SIGALRM, &action, nullptr);
  arm();
  std::vector<std::vector<char>> blocks(64);
  for (int i = 0; (i < 2000 || forks.load() > 0) && !failed.load(); ++i) {
    is_allocating = true;
    blocks[static_cast<std::size_t>(i) % blocks.size()].assign(static_cast<std::size_t>(i % 7000),
                                                               'x');
    is_allocating = false;
    if (left_open.load() < 0) left_open = ::open(path, O_RDONLY | O_CLOEXEC);
    read_once();
    for (int again = 0; again < 20; ++again) read_common();
  }
  ::signal(SIGALRM, SIG_IGN);
  ::close(common);
  if (failed.load()) std::puts("other bytes, or an error");
  return failed.load() ? 1 : 0;
}
