// Makes random calls on pairs of files with the same content, one of which is read ahead while the
// other is left alone: plain POSIX is the model. Both must return the same counts, bytes, positions
// and errnos. Calls: open, dup, dup2, F_DUPFD, lseek, read, pread, readv, preadv, write, pwrite,
// ftruncate, posix_fadvise, fork with reads in the child, close, close_range, fclose; reads into
// memory that cannot be written, and dup2 onto numbers where descriptors of the library may be.
//
// usage: random_calls SEED CALLS MANAGED MODEL; status 1 and a message where they differ.

#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

namespace {

struct Pair {
  int managed = -1;
  int model = -1;
  bool writable = false;
};

/// What a call gave.
struct Outcome {
  long long result = 0;
  int error = 0;
  std::vector<char> bytes;
  bool operator==(const Outcome&) const = default;
};

class RandomCalls {
 public:
  RandomCalls(unsigned seed, std::string managed, std::string model)
      : random_(seed), managed_path_(std::move(managed)), model_path_(std::move(model)) {}

  bool run(int calls) {
    for (int i = 0; i < calls; ++i) {
      if (!step()) {
        std::fprintf(stderr, "call %d (%s) differs\n", i, doing_.c_str());
        return false;
      }
    }
    return true;
  }

 private:
  static constexpr int most_open = 6;
  static constexpr long most_offset = 5'000'000;

  long upto(long most) { return std::uniform_int_distribution<long>(0, most)(random_); }
  bool chance(int percent) { return upto(99) < percent; }

  /// Long, short and empty reads.
  std::size_t length() {
    static constexpr std::array<long, 4> most = {100, 5000, 100'000, 700'000};
    return static_cast<std::size_t>(upto(most[static_cast<std::size_t>(upto(3))]));
  }

  template <typename Call>
  static Outcome outcome(Call call, std::size_t room = 0) {
    Outcome result;
    result.bytes.assign(room, 'x');
    errno = 0;
    result.result = call(result.bytes.data());
    result.error = errno;
    return result;
  }

  /// The same call on both files of a pair.
  template <typename Call>
  bool same(const Pair& pair, std::size_t room, Call call) {
    const Outcome managed = outcome([&](char* b) { return call(pair.managed, b); }, room);
    const Outcome model = outcome([&](char* b) { return call(pair.model, b); }, room);
    if (managed == model) return true;
    std::fprintf(stderr, "managed: %lld, errno %d; model: %lld, errno %d; bytes %s\n",
                 managed.result, managed.error, model.result, model.error,
                 managed.bytes == model.bytes ? "equal" : "differ");
    return false;
  }

  bool step() {
    if (open_.empty() || (open_.size() < most_open && chance(8))) return open_one();
    const auto which = static_cast<std::size_t>(upto(static_cast<long>(open_.size()) - 1));
    const long kind = upto(99);
    if (kind < 80) return read_somehow(open_[which]);
    if (kind < 86) return seek(open_[which]);
    if (kind < 91) return copy(open_[which]);
    if (kind < 92) return fork_and_read(open_[which]);
    if (kind < 94) return change(open_[which]);
    return close_one(which);
  }

  bool open_one() {
    doing_ = "open";
    Pair pair;
    pair.writable = chance(2);
    const int flags = (pair.writable ? O_RDWR : O_RDONLY) | (chance(50) ? O_CLOEXEC : 0);
    pair.managed = ::open(managed_path_.c_str(), flags);
    pair.model = ::open(model_path_.c_str(), flags);
    open_.push_back(pair);
    return pair.managed >= 0 && pair.model >= 0;
  }

  bool read_somehow(const Pair& pair) {
    const std::size_t count = length();
    // Most go on where the last one ended: else nothing would be foreseen.
    const off_t offset = chance(70) ? next_offset_ : upto(most_offset) - 10;
    next_offset_ = (offset + static_cast<off_t>(count)) % most_offset;
    switch (upto(6)) {
      case 6: {
        doing_ = "read into bad memory";
        char* const bad = chance(50) ? unwritable_ : nullptr;
        return same(pair, 0, [&](int fd, char*) { return ::pread(fd, bad, count, offset); }) &&
               same(pair, 0, [&](int fd, char*) { return ::read(fd, bad, count); });
      }
      case 0:
        doing_ = "pread";
        return same(pair, count, [&](int fd, char* b) { return ::pread(fd, b, count, offset); });
      case 1: {
        doing_ = "preadv";
        return same(pair, 2 * count, [&](int fd, char* b) {
          const std::array<iovec, 3> pieces = {iovec{b, count / 2}, iovec{b + count, 0},
                                               iovec{b + count, count}};
          return ::preadv(fd, pieces.data(), 3, offset);
        });
      }
      case 2: {
        doing_ = "readv";
        return same(pair, count, [&](int fd, char* b) {
          const std::array<iovec, 2> pieces = {iovec{b, count / 3},
                                               iovec{b + count / 3, count - count / 3}};
          return ::readv(fd, pieces.data(), 2);
        });
      }
      default:
        doing_ = "read";
        return same(pair, count, [&](int fd, char* b) { return ::read(fd, b, count); });
    }
  }

  bool seek(const Pair& pair) {
    if (chance(50)) {
      doing_ = "posix_fadvise";  // What is in no cache has to be fetched.
      return same(pair, 0,
                  [](int fd, char*) { return ::posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED); });
    }
    doing_ = "lseek";
    const int whence = static_cast<int>(upto(2));
    const off_t offset = whence == SEEK_SET ? upto(most_offset) : upto(200'000) - 100'000;
    return same(pair, 0, [&](int fd, char*) { return ::lseek(fd, offset, whence); });
  }

  bool copy(Pair pair) {
    if (open_.size() == most_open) return true;
    Pair made = pair;
    switch (upto(3)) {
      case 3:
        doing_ = "dup2 onto a high number";
        made.managed = ::dup2(pair.managed, high_number_);
        made.model = ::dup2(pair.model, high_number_ + 500);
        ++high_number_;
        break;
      case 0:
        doing_ = "dup";
        made.managed = ::dup(pair.managed);
        made.model = ::dup(pair.model);
        break;
      case 1:
        doing_ = "F_DUPFD";
        made.managed = ::fcntl(pair.managed, F_DUPFD_CLOEXEC, 20);
        made.model = ::fcntl(pair.model, F_DUPFD_CLOEXEC, 20);
        break;
      default: {
        doing_ = "dup2";
        // Onto another open pair, which goes.
        Pair& target = open_[static_cast<std::size_t>(upto(static_cast<long>(open_.size()) - 1))];
        if (::dup2(pair.managed, target.managed) < 0) return false;
        if (::dup2(pair.model, target.model) < 0) return false;
        target.writable = pair.writable;
        return true;
      }
    }
    open_.push_back(made);
    return made.managed >= 0 && made.model >= 0;
  }

  /// Reads in a child move the position of the parent.
  bool fork_and_read(const Pair& pair) {
    const std::size_t count = length();
    const pid_t child = ::fork();
    if (child == 0) {
      const bool right = same(pair, count, [&](int fd, char* b) { return ::read(fd, b, count); }) &&
                         open_one() && read_somehow(open_.back());
      ::_exit(right ? 0 : 1);
    }
    doing_ = "fork";
    int status = 0;
    return child > 0 && ::waitpid(child, &status, 0) == child && status == 0;
  }

  bool change(const Pair& pair) {
    if (!pair.writable) {
      doing_ = "write to what is open for reading";
      return same(pair, 0, [&](int fd, char*) { return ::write(fd, "x", 1); });
    }
    if (chance(20)) {
      doing_ = "ftruncate";
      const off_t size = upto(most_offset);
      return same(pair, 0, [&](int fd, char*) { return ::ftruncate(fd, size); });
    }
    doing_ = "pwrite";
    const std::string data(static_cast<std::size_t>(upto(3000)), static_cast<char>(upto(255)));
    const off_t offset = upto(most_offset);
    return same(pair, 0,
                [&](int fd, char*) { return ::pwrite(fd, data.data(), data.size(), offset); });
  }

  bool close_one(std::size_t which) {
    const Pair pair = open_[which];
    open_.erase(open_.begin() + static_cast<std::ptrdiff_t>(which));
    switch (upto(2)) {
      case 0:
        doing_ = "close_range";
        return same(pair, 0, [&](int fd, char*) {
          const auto number = static_cast<unsigned>(fd);
          return ::close_range(number, number, 0);
        });
      case 1:
        doing_ = "fclose";
        return same(pair, 0, [&](int fd, char*) {
          FILE* stream = ::fdopen(fd, "r");
          return stream == nullptr ? -1 : ::fclose(stream);
        });
      default:
        doing_ = "close";
        return same(pair, 0, [](int fd, char*) { return ::close(fd); });
    }
  }

  std::mt19937 random_;
  const std::string managed_path_;
  const std::string model_path_;
  std::vector<Pair> open_;
  off_t next_offset_ = 0;
  int high_number_ = 100;
  char* const unwritable_ =
      static_cast<char*>(::mmap(nullptr, 1 << 20, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  std::string doing_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) return 2;
  RandomCalls calls(static_cast<unsigned>(std::atoi(argv[1])), argv[3], argv[4]);
  return calls.run(std::atoi(argv[2])) ? 0 : 1;
}
