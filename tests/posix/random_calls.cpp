// Makes random calls on pairs of files with the same content, one of which is read ahead while the
// other is left alone: plain POSIX is the model. Both must return the same counts, bytes, positions
// and errnos. Calls: the open family with creat and openat2; read, pread, readv, preadv, preadv2
// with flags and what _FORTIFY_SOURCE makes of them; lseek and posix_fadvise; dup, dup2, dup3,
// fcntl; writes, truncations and holes by another descriptor, by name, through a mapping and in a
// child; mmap, mremap, munmap; close, close_range, closefrom, fclose; memory that cannot be
// written, and numbers where descriptors of the library may be.
//
// usage: random_calls SEED CALLS WRITERS at-once|settling MANAGED...; the model of FILE is
// FILE.model. WRITERS: of 100 openings those for writing. "settling": waits in the middle until
// what was written may be served from memory again. Status 1 and a message where they differ.

#include <dlfcn.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <climits>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "tests/posix/compared_calls.hpp"

// NOLINTBEGIN(bugprone-reserved-identifier): the names are the C library's.
extern "C" {
int __open_2(const char* path, int flags);
int __open64_2(const char* path, int flags);
int __openat_2(int directory, const char* path, int flags);
int __openat64_2(int directory, const char* path, int flags);
ssize_t __read_chk(int fd, void* buffer, size_t count, size_t room);
ssize_t __pread_chk(int fd, void* buffer, size_t count, off_t offset, size_t room);
ssize_t __pread64_chk(int fd, void* buffer, size_t count, off64_t offset, size_t room);
}
// NOLINTEND(bugprone-reserved-identifier)

namespace {

/// core/storage/file_version.hpp
constexpr std::chrono::milliseconds settling_time{2100};

class RandomCalls : ComparedCalls {
 public:
  RandomCalls(unsigned seed, int writers, std::vector<std::string> paths)
      : random_(seed), writers_(writers), paths_(std::move(paths)) {}

  bool run(int calls) {
    for (int i = 0; i < calls; ++i) {
      if (!step()) {
        std::fprintf(stderr, "call %d (%s) differs\n", i, doing_.c_str());
        return false;
      }
    }
    return true;
  }

  static void wait_until_settled() { std::this_thread::sleep_for(settling_time); }

 private:
  static constexpr std::size_t most_open = 8;
  static constexpr long most_offset = 5'000'000;

  long upto(long most) { return std::uniform_int_distribution<long>(0, most)(random_); }
  bool chance(int percent) { return upto(99) < percent; }
  std::size_t index(std::size_t count) {
    return static_cast<std::size_t>(upto(static_cast<long>(count) - 1));
  }

  /// Long, short and empty reads.
  std::size_t length() {
    static constexpr std::array<long, 4> most = {100, 5000, 100'000, 700'000};
    return static_cast<std::size_t>(upto(most[index(4)]));
  }

  bool step() {
    if (open_.empty() || (open_.size() < most_open && chance(10))) return open_one();
    const std::size_t which = index(open_.size());
    const Pair& pair = open_[which];
    const long kind = upto(199);
    if (kind < 130) return read_somehow(pair);
    if (kind < 142) return seek(pair);
    if (kind < 155) return copy(pair);
    if (kind < 158) return fork_and_go_on(pair);
    if (kind < 176) return change(chance(50) ? a_writable(pair) : pair);
    if (kind < 184) return map(pair);
    if (kind < 187) return set_flags(pair);
    if (kind < 188) return close_all();
    return close_one(which);
  }

  const Pair& a_writable(const Pair& otherwise) const {
    const auto found = std::ranges::find(open_, true, &Pair::writable);
    return found == open_.end() ? otherwise : *found;
  }

  bool open_one() {
    doing_ = "open";
    Pair pair;
    pair.file = index(paths_.size());
    pair.writable = chance(writers_);
    int flags = pair.writable ? (chance(85) ? O_RDWR : O_WRONLY) : O_RDONLY;
    if (chance(50)) flags |= O_CLOEXEC;
    if (pair.writable && chance(10)) flags |= O_APPEND;
    if (pair.writable && chance(5)) flags |= O_TRUNC;
    if (chance(2)) flags |= O_CREAT | O_EXCL;  // It is there.
    const int directory = ::open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const long way = pair.writable && chance(6) ? 10 : upto(chance(95) ? 8 : 9);
    const auto open = [&](const std::string& path) {
      const char* name = path.c_str();
      // The checked forms take no mode.
      switch ((flags & O_CREAT) != 0 ? way % 5 : way) {
        case 0:
          return ::open(name, flags, 0644);
        case 1:
          return ::open64(name, flags, 0644);
        case 2:
          return ::openat(directory, name, flags, 0644);
        case 3:
          return ::openat64(AT_FDCWD, name, flags, 0644);
        case 4:
          return open_how_it_says(directory, name, flags);
        case 5:
          return __open_2(name, flags);
        case 6:
          return __open64_2(name, flags);
        case 7:
          return __openat_2(AT_FDCWD, name, flags);
        case 8:
          return __openat64_2(directory, name, flags);
        case 9:
          return ::open((path + "/").c_str(), flags);  // ENOTDIR
        default:
          return ::creat(name, 0644);
      }
    };
    const std::string& path = paths_[pair.file];
    const bool good =
        same_success([&] { return open(path); }, [&] { return open(path + ".model"); }, pair);
    ::close(directory);
    if (pair.managed >= 0 && pair.model >= 0) open_.push_back(pair);
    return good;
  }

  /// The C library may have no such call; the library has.
  static int open_how_it_says(int directory, const char* name, int flags) {
    using Call = int (*)(int, const char*, const open_how*, std::size_t);
    static const auto call = reinterpret_cast<Call>(::dlsym(RTLD_DEFAULT, "openat2"));
    const std::uint64_t mode = (flags & O_CREAT) != 0 ? 0644 : 0;
    const open_how how{static_cast<std::uint64_t>(flags), mode, RESOLVE_IN_ROOT};
    return call(directory, name, &how, sizeof how);
  }

  bool read_somehow(const Pair& pair) {
    const std::size_t count = length();
    // Most go on where the last one ended: else nothing would be foreseen.
    const off_t offset = chance(70) ? next_offset_ : upto(most_offset) - 10;
    next_offset_ = (offset + static_cast<off_t>(count)) % most_offset;
    const std::size_t room = count + static_cast<std::size_t>(upto(10));
    switch (upto(12)) {
      case 0: {
        doing_ = "read into bad memory";
        char* const bad = a_bad_place();
        return same(pair, 0, [&](int fd, char*) { return ::pread(fd, bad, count, offset); }) &&
               same(pair, 0, [&](int fd, char*) { return ::read(fd, bad, count); });
      }
      case 1:
        doing_ = "pread";
        return same(pair, count, [&](int fd, char* b) { return ::pread(fd, b, count, offset); });
      case 2:
        doing_ = "__read_chk";
        return same(pair, count, [&](int fd, char* b) { return __read_chk(fd, b, count, room); });
      case 3:
        doing_ = "__pread_chk";
        return same(pair, count,
                    [&](int fd, char* b) { return __pread_chk(fd, b, count, offset, room); });
      case 4:
        doing_ = "__pread64_chk";
        return same(pair, count,
                    [&](int fd, char* b) { return __pread64_chk(fd, b, count, offset, room); });
      case 5:
        return read_pieces(pair, count, chance(5) ? LLONG_MAX - upto(9) : offset);
      case 6:
      case 7:
        return read_pieces(pair, count, offset);
      default:
        doing_ = "read";
        return same(pair, count, [&](int fd, char* b) { return ::read(fd, b, count); });
    }
  }

  char* a_bad_place() {
    // NOLINTNEXTLINE(performance-no-int-to-ptr): no program has memory there.
    static char* const kernels = reinterpret_cast<char*>(-4096L);
    return std::array<char*, 3>{unwritable_, nullptr, kernels}[index(3)];
  }

  /// An array of pieces that cannot be read, or not to its end.
  const iovec* a_bad_array() {
    return reinterpret_cast<const iovec*>(chance(50) ? a_bad_place() : last_page_end_ - 5);
  }

  /// About `count` bytes in some pieces that do not touch, or lie on each other, or in as many as
  /// there may be or more.
  bool read_pieces(const Pair& pair, std::size_t count, off_t offset) {
    const std::size_t number = chance(90) ? index(7) : 1020 + index(7);
    std::vector<iovec> pieces(number);
    std::size_t room = 0;
    for (iovec& piece : pieces) {
      piece.iov_len = chance(15) ? 0 : index(std::max<std::size_t>(2 * count / number, 2));
      // NOLINTNEXTLINE(performance-no-int-to-ptr): a place in the buffer, for now.
      piece.iov_base = reinterpret_cast<void*>(room);
      room += piece.iov_len + index(3);
    }
    const bool may_overlap = chance(30);
    for (iovec& piece : pieces) {
      if (!may_overlap || !chance(50)) continue;
      // NOLINTNEXTLINE(performance-no-int-to-ptr): the same.
      piece.iov_base = reinterpret_cast<void*>(index(room - piece.iov_len + 1));
    }
    // What lies beyond bad memory may have been read or not.
    char* const bad = number > 0 && chance(8) ? a_bad_place() : nullptr;
    const std::size_t at = bad != nullptr ? index(number) : number;
    const iovec* const bad_array = chance(3) ? a_bad_array() : nullptr;
    const bool too_long = number > 0 && chance(1);
    if (too_long) pieces[index(number)].iov_len = SIZE_MAX;
    static constexpr std::array<int, 7> some_flags = {
        0, 0, RWF_HIPRI, RWF_DSYNC, RWF_SYNC | RWF_HIPRI, RWF_SYNC, 1 << 30};
    const int flags = some_flags[index(some_flags.size())];
    const long way = upto(5);
    static constexpr std::array names = {"preadv", "preadv2", "preadv2 at the position"};
    doing_ = std::string(way < 3 ? names[static_cast<std::size_t>(way)] : "readv") + " of " +
             std::to_string(number) + " pieces" + (bad != nullptr ? ", one of them bad" : "") +
             (bad_array != nullptr ? ", their array bad" : "") + ", flags " + std::to_string(flags);
    return same(pair, bad != nullptr ? 0 : room, [&](int fd, char* b) {
      std::vector<iovec> placed = pieces;
      for (iovec& piece : placed)
        piece.iov_base = b + reinterpret_cast<std::size_t>(piece.iov_base);
      if (at < number) placed[at].iov_base = bad;
      const int n = static_cast<int>(number);
      const iovec* const given = bad_array != nullptr ? bad_array : placed.data();
      if (way == 0) return ::preadv(fd, given, n, offset);
      if (way == 1) return ::preadv2(fd, given, n, offset == -1 ? -2 : offset, flags);
      if (way == 2) return ::preadv2(fd, given, n, -1, flags);
      return ::readv(fd, given, n);
    });
  }

  bool seek(const Pair& pair) {
    if (chance(50)) {
      doing_ = "posix_fadvise";  // What is in no cache has to be fetched.
      return same(pair, 0,
                  [](int fd, char*) { return ::posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED); });
    }
    doing_ = "lseek";
    const int whence = static_cast<int>(upto(4));  // SEEK_DATA and SEEK_HOLE, too.
    const off_t offset = whence == SEEK_SET ? upto(most_offset) : upto(200'000) - 100'000;
    return same(pair, 0, [&](int fd, char*) { return ::lseek(fd, offset, whence); });
  }

  bool copy(const Pair& pair) {
    if (open_.size() == most_open) return true;
    Pair made = pair;
    const auto copied = [&](auto call) {
      return same_success([&] { return call(pair.managed, 0); },
                          [&] { return call(pair.model, 500); }, made);
    };
    bool good = false;
    switch (upto(6)) {
      case 0:
        doing_ = "dup";
        good = copied([](int fd, int) { return ::dup(fd); });
        break;
      case 1:
        doing_ = "F_DUPFD";
        good = copied([](int fd, int) { return ::fcntl(fd, F_DUPFD_CLOEXEC, 20); });
        break;
      case 2:
        doing_ = "F_DUPFD by fcntl64";
        good = copied([](int fd, int) { return ::fcntl64(fd, F_DUPFD, 20); });
        break;
      case 3:
        doing_ = "dup2 onto a high number";
        good = copied([&](int fd, int more) { return ::dup2(fd, high_number_ + more); });
        ++high_number_;
        break;
      case 4:
        doing_ = "dup3 onto a high number";
        good = copied([&](int fd, int more) { return ::dup3(fd, high_number_ + more, O_CLOEXEC); });
        ++high_number_;
        break;
      default:
        return copy_onto(pair, open_[index(open_.size())]);
    }
    if (made.managed >= 0 && made.model >= 0) open_.push_back(made);
    return good;
  }

  /// Onto another open pair, which goes; or which stays, where that fails.
  bool copy_onto(const Pair pair, Pair& target) {
    const long way = upto(9);
    const int flags = way == 8 ? 1 : O_CLOEXEC;
    doing_ = way < 4 ? "dup2" : way < 9 ? "dup3" : "dup2 of nothing";
    const auto call = [&](int fd, int onto) {
      return way < 4 ? ::dup2(fd, onto) : way < 9 ? ::dup3(fd, onto, flags) : ::dup2(-1, onto);
    };
    Pair made;
    const bool good = same_success([&] { return call(pair.managed, target.managed); },
                                   [&] { return call(pair.model, target.model); }, made);
    if (made.managed >= 0) {
      target.writable = pair.writable;
      target.file = pair.file;
    }
    return good;
  }

  /// Reads in a child move the position of the parent, and its writes are seen there.
  bool fork_and_go_on(const Pair& pair) {
    const std::size_t count = length();
    const pid_t child = ::fork();
    if (child == 0) {
      const bool right = same(pair, count, [&](int fd, char* b) { return ::read(fd, b, count); }) &&
                         read_somehow(pair) && read_somehow(pair) && read_somehow(pair) &&
                         read_somehow(pair) && open_one() && change(open_.back()) &&
                         read_somehow(open_.back());
      if (!right) std::fprintf(stderr, "in the child: %s\n", doing_.c_str());
      ::_exit(right ? 0 : 1);
    }
    doing_ = "fork";
    int status = 0;
    return child > 0 && ::waitpid(child, &status, 0) == child && status == 0;
  }

  bool change(const Pair& pair) {
    // A file that is open for reading only gives EBADF or EINVAL.
    const off_t offset = upto(most_offset);
    const std::string data(static_cast<std::size_t>(upto(chance(20) ? 400'000 : 3000)),
                           static_cast<char>(upto(255)));
    switch (pair.writable ? upto(9) : upto(5)) {
      case 0:
        doing_ = "ftruncate";
        return same(pair, 0, [&](int fd, char*) { return ::ftruncate(fd, offset); });
      case 1:
        doing_ = "write";
        return same(pair, 0, [&](int fd, char*) { return ::write(fd, data.data(), data.size()); });
      case 2:
        doing_ = "fallocate";
        return same(pair, 0, [&](int fd, char*) {
          return ::fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, offset, 100'000);
        });
      case 6: {
        doing_ = "truncate";
        const std::string& path = paths_[pair.file];
        const std::string model = path + ".model";
        return equal(outcome([&] { return ::truncate(path.c_str(), offset); }),
                     outcome([&] { return ::truncate(model.c_str(), offset); }));
      }
      default:
        doing_ = "pwrite";
        return same(pair, 0,
                    [&](int fd, char*) { return ::pwrite(fd, data.data(), data.size(), offset); });
    }
  }

  /// What a mapping of a file shows, before and after it is made longer or shorter, and what is
  /// written through it. Then it is shown once more, far from everything else.
  bool map(const Pair& pair) {
    doing_ = "mmap and mremap";
    const off_t offset = upto(most_offset) / page * page;
    const std::size_t first = page * (1 + index(30));
    const std::size_t then = page * (1 + index(60));
    const bool writes = pair.writable && chance(50);
    bool is_where_wanted = true;
    const bool good = same(pair, most_room, [&](int fd, char* into) -> long long {
      struct stat status{};
      const int protection = PROT_READ | (writes ? PROT_WRITE : 0);
      void* place = ::mmap(nullptr, first, protection, MAP_SHARED, fd, offset);
      if (place == MAP_FAILED || ::fstat(fd, &status) != 0) return -1;
      const auto shown = [&](std::size_t length) {
        return static_cast<std::size_t>(
            std::clamp<off_t>(status.st_size - offset, 0, static_cast<off_t>(length)));
      };
      std::memcpy(into, place, shown(first));
      place = ::mremap(place, first, then, MREMAP_MAYMOVE);
      if (place == MAP_FAILED) return -2;
      std::memcpy(into + first, place, shown(then));
      if (writes) std::memset(place, 'm', shown(then) / 3);
      void* const wanted = static_cast<char*>(place) - (std::ptrdiff_t{1} << 36);
      void* const moved = ::mremap(place, then, then, MREMAP_MAYMOVE | MREMAP_DONTUNMAP, wanted);
      if (moved != MAP_FAILED) {  // Before Linux 5.13.
        is_where_wanted &= moved == wanted;
        ::munmap(moved, then);
      }
      return ::munmap(place, then);
    });
    if (!is_where_wanted) std::fprintf(stderr, "not moved to where it was wanted\n");
    return good && is_where_wanted;
  }

  /// Reads past every cache, perhaps by another descriptor than this one.
  bool set_flags(const Pair& pair) {
    doing_ = "F_SETFL";
    // Which of these reads the kernel refuses depends on where the file system put holes, and two
    // files that were written alike may have them at different places.
    const bool may_be_direct = writers_ == 0;
    const int flags = may_be_direct && chance(60) ? O_DIRECT : chance(50) ? O_NONBLOCK : O_APPEND;
    const bool is_64 = chance(50);
    return same(pair, 0, [&](int fd, char*) {
      return is_64 ? ::fcntl64(fd, F_SETFL, flags) : ::fcntl(fd, F_SETFL, flags);
    });
  }

  bool close_one(std::size_t which) {
    const Pair pair = open_[which];
    open_.erase(open_.begin() + static_cast<std::ptrdiff_t>(which));
    switch (upto(2)) {
      case 0:
        doing_ = "close_range";
        return closes(pair, [&](int fd) {
          const auto number = static_cast<unsigned>(fd);
          return ::close_range(number, number, 0);
        });
      case 1:
        doing_ = "fclose";
        return closes(pair, [&](int fd) {
          FILE* stream = ::fdopen(fd, "r");
          return stream == nullptr ? ::close(fd) - 1 : ::fclose(stream);
        });
      default:
        doing_ = "close";
        return closes(pair, [](int fd) { return ::close(fd); }) &&
               closes(pair, [](int fd) { return ::close(fd); });  // EBADF
    }
  }

  template <typename Close>
  bool closes(const Pair& pair, Close close) {
    return same(pair, 0, [&](int fd, char*) { return close(fd); });
  }

  /// Every descriptor of the program, or none: marks them, or is wrong.
  bool close_all() {
    unsigned first = UINT_MAX;
    for (const Pair& pair : open_) {
      first =
          std::min({first, static_cast<unsigned>(pair.managed), static_cast<unsigned>(pair.model)});
    }
    int result = 0;
    bool stay = true;
    switch (upto(4)) {
      case 0:
        doing_ = "close_range that only marks";
        result = ::close_range(first, UINT_MAX, CLOSE_RANGE_CLOEXEC);
        break;
      case 1:
        doing_ = "close_range of nothing";
        result = ::close_range(first, first - 1, 0) + 1;
        break;
      case 2:
        doing_ = "closefrom";
        ::closefrom(static_cast<int>(first));
        stay = false;
        break;
      default:
        doing_ = "close_range of all";
        result = ::close_range(first, UINT_MAX, 0);
        stay = false;
    }
    const bool good = result == 0 && std::ranges::all_of(open_, [&](const Pair& pair) {
                        return same(pair, 0, [](int fd, char*) { return ::fcntl(fd, F_GETFD); }) &&
                               (::fcntl(pair.managed, F_GETFD) >= 0) == stay;
                      });
    if (!stay) open_.clear();
    return good;
  }

  static constexpr std::size_t page = 4096;

  /// Nothing can be read behind it.
  static char* a_last_page() {
    char* const place = memory(2 * page, PROT_READ | PROT_WRITE);
    ::mprotect(place + page, page, PROT_NONE);
    return place;
  }

  std::mt19937 random_;
  const int writers_;
  const std::vector<std::string> paths_;
  std::vector<Pair> open_;
  off_t next_offset_ = 0;
  int high_number_ = 100;
  char* const unwritable_ = memory(1 << 20, PROT_READ);
  char* const last_page_end_ = a_last_page() + page;
  std::string doing_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc < 6) return 2;
  const int calls = std::atoi(argv[2]);
  RandomCalls random(static_cast<unsigned>(std::atoi(argv[1])), std::atoi(argv[3]),
                     std::vector<std::string>(argv + 5, argv + argc));
  if (!random.run(calls / 2)) return 1;
  if (std::strcmp(argv[4], "settling") == 0) RandomCalls::wait_until_settled();
  return random.run(calls - calls / 2) ? 0 : 1;
}
