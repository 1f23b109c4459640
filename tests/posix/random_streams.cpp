// Makes random calls on pairs of C streams over files with the same content, one of which is read
// ahead while the other is left alone: plain stdio is the model. Both must return the same counts,
// bytes, positions, ends, errors and errnos; so must mappings and the descriptors behind the
// streams. Calls: fopen (also for updating, and with wide characters), fdopen, freopen, setvbuf,
// fread, fread_unlocked and what _FORTIFY_SOURCE makes of them, fgets, getc, fgetc, getc_unlocked,
// ungetc, getline, getdelim, fscanf, fgetwc, fseek, fseeko, fgetpos, fsetpos, rewind, ftell,
// freopen64, fseeko64, ftello64, fgetpos64, fsetpos64, fflush and read, mmap, munmap, fork, fwrite,
// fclose. Before that, streams that have nothing to do with these files.
//
// usage: random_streams SEED CALLS MANAGED MODEL; status 1 and a message where they differ.

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <wchar.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>

// NOLINTBEGIN(bugprone-reserved-identifier): the names are the C library's.
extern "C" {
size_t __fread_chk(void* buffer, size_t room, size_t size, size_t count, FILE* stream);
size_t __fread_unlocked_chk(void* buffer, size_t room, size_t size, size_t count, FILE* stream);
}
// NOLINTEND(bugprone-reserved-identifier)

namespace {

struct Pair {
  FILE* managed = nullptr;
  FILE* model = nullptr;
};

struct Outcome {
  long long result = 0;
  int error = 0;
  long position = 0;
  bool is_at_end = false;
  bool has_failed = false;
  std::string bytes;
  bool operator==(const Outcome&) const = default;
};

class RandomStreams {
 public:
  RandomStreams(unsigned seed, std::string managed, std::string model)
      : random_(seed), managed_path_(std::move(managed)), model_path_(std::move(model)) {}

  bool run(int calls) {
    for (int i = 0; i < calls; ++i) {
      if (!step()) {
        std::fprintf(stderr, "call %d (%s) differs\n", i, doing_);
        return false;
      }
    }
    return true;
  }

 private:
  static constexpr long size = 4'000'000;

  long upto(long most) { return std::uniform_int_distribution<long>(0, most)(random_); }

  template <typename Call>
  static Outcome outcome(FILE* stream, Call call) {
    Outcome result;
    errno = 0;
    result.result = call(stream, result.bytes);
    result.error = errno;
    result.position = std::ftell(stream);
    result.is_at_end = std::feof(stream) != 0;
    result.has_failed = std::ferror(stream) != 0;
    return result;
  }

  /// `call` gets a stream and room for the bytes it reads.
  template <typename Call>
  bool same(const char* doing, Call call) {
    doing_ = doing;
    const Outcome managed = outcome(open_.managed, call);
    const Outcome model = outcome(open_.model, call);
    if (managed == model) return true;
    std::fprintf(stderr, "managed: %lld, errno %d, at %ld; model: %lld, errno %d, at %ld\n",
                 managed.result, managed.error, managed.position, model.result, model.error,
                 model.position);
    return false;
  }

  bool step() {
    if (open_.managed == nullptr) return open_one();
    const long kind = upto(99);
    if (kind < 50) return read_piece();
    if (kind < 72) return read_text();
    if (kind < 88) return seek();
    if (kind < 92) return map();
    if (kind < 94) return read_descriptor();
    if (kind < 95) return fork_and_read();
    if (kind < 97) return reopen();
    return same("fclose", [](FILE* stream, std::string&) { return std::fflush(stream); }) &&
           close_one();
  }

  bool open_one() {
    doing_ = "fopen";
    static constexpr std::array<const char*, 6> modes = {"r", "rb", "re", "rm", "r+", "r"};
    const char* mode = modes[static_cast<std::size_t>(upto(upto(3) == 0 ? 5 : 2))];
    if (upto(3) == 0) {
      open_ = {::fdopen(::open(managed_path_.c_str(), O_RDONLY), "r"),
               ::fdopen(::open(model_path_.c_str(), O_RDONLY), "r")};
    } else {
      open_ = {std::fopen(managed_path_.c_str(), mode), std::fopen(model_path_.c_str(), mode)};
    }
    if (upto(3) == 0) {
      static constexpr std::array<int, 3> ways = {_IOFBF, _IOLBF, _IONBF};
      const int way = ways[static_cast<std::size_t>(upto(2))];
      const auto room = static_cast<std::size_t>(upto(100'000) + 1);
      std::setvbuf(open_.managed, nullptr, way, room);
      std::setvbuf(open_.model, nullptr, way, room);
    }
    return open_.managed != nullptr && open_.model != nullptr;
  }

  bool close_one() {
    const bool closed = std::fclose(open_.managed) == 0 && std::fclose(open_.model) == 0;
    open_ = {};
    return closed;
  }

  bool read_piece() {
    static constexpr std::array<long, 4> most = {10, 5000, 100'000, 900'000};
    const auto units = static_cast<std::size_t>(upto(2) * 3 + 1);
    const auto count = static_cast<std::size_t>(upto(most[static_cast<std::size_t>(upto(3))]));
    const long how = upto(3);
    const auto fread_somehow = [=](char* into, std::size_t room, FILE* stream) {
      switch (how) {
        case 0:
          return ::fread_unlocked(into, units, count, stream);
        case 1:
          return __fread_chk(into, room, units, count, stream);
        case 2:
          return __fread_unlocked_chk(into, room, units, count, stream);
        default:
          return std::fread(into, units, count, stream);
      }
    };
    return same("fread", [&](FILE* stream, std::string& bytes) {
      bytes.assign(units * count, 'x');
      return static_cast<long long>(fread_somehow(bytes.data(), bytes.size(), stream));
    });
  }

  bool read_text() {
    const long how = upto(7);
    const auto room = static_cast<std::size_t>(upto(2000) + 1);
    return same("text", [&](FILE* stream, std::string& bytes) -> long long {
      char* line = nullptr;
      std::size_t length = 0;
      switch (how) {
        case 0:
          bytes.assign(room, 'x');
          return std::fgets(bytes.data(), static_cast<int>(room), stream) != nullptr ? 1 : 0;
        case 1:
          return std::getc(stream);
        case 2:
          return std::fgetc(stream) + ::getc_unlocked(stream);
        case 3:
          return std::ungetc(std::getc(stream), stream);
        case 4:
        case 5: {
          const ssize_t got = how == 4 ? ::getline(&line, &length, stream)
                                       : ::getdelim(&line, &length, 'e', stream);
          if (got > 0) bytes.assign(line, static_cast<std::size_t>(got));
          std::free(line);
          return got;
        }
        case 6: {
          std::array<char, 64> word{};
          const int found = std::fscanf(stream, "%63[^ ]", word.data());
          bytes.assign(word.data(), word.size());
          return found;
        }
        default:  // Only where it was decided early; else it is an error on both.
          return ::fwide(stream, 0) > 0 ? static_cast<long long>(::fgetwc(stream)) : 0;
      }
    });
  }

  bool seek() {
    const long how = upto(6);
    const int whence = static_cast<int>(upto(2));
    const long offset = whence == SEEK_SET ? upto(size + 1000) : upto(200'000) - 150'000;
    return same("seek", [&](FILE* stream, std::string&) -> long long {
      std::fpos_t position{};
      ::fpos64_t position64{};
      switch (how) {
        case 0:
          std::rewind(stream);  // NOLINT(bugprone-unsafe-functions): it is what is tried.
          return 0;
        case 1:
          return std::fgetpos(stream, &position) + std::fsetpos(stream, &position);
        case 2:
          return ::fgetpos64(stream, &position64) + ::fsetpos64(stream, &position64);
        case 3:
          return ::fseeko(stream, offset, whence);
        case 4:
          return ::fseeko64(stream, offset, whence) == 0 ? ::ftello64(stream) : -1;
        default:
          return std::fseek(stream, offset, whence);
      }
    });
  }

  /// Some pages of the file, some of them behind its end's last one are left out.
  bool map() {
    const long page = ::sysconf(_SC_PAGESIZE);
    const long first = upto(size / page / 2);
    const long pages = upto(200) + 1;
    return same("mmap", [&](FILE* stream, std::string& bytes) -> long long {
      const auto length = static_cast<std::size_t>(pages * page);
      void* place = ::mmap(nullptr, length, PROT_READ, MAP_PRIVATE, ::fileno(stream), first * page);
      if (place == MAP_FAILED) return -1;
      bytes.assign(static_cast<const char*>(place), length);
      return ::munmap(place, length);
    });
  }

  /// The descriptor and the stream are two handles of one file: fflush says where the stream is.
  bool read_descriptor() {
    return same("fflush and read", [&](FILE* stream, std::string& bytes) -> long long {
      if (std::fflush(stream) != 0) return -2;
      bytes.assign(3000, 'x');
      const auto got = ::read(::fileno(stream), bytes.data(), bytes.size());
      return std::fseek(stream, 0, SEEK_CUR) + got;
    });
  }

  bool fork_and_read() {
    doing_ = "fork";
    std::fflush(stderr);
    const pid_t child = ::fork();
    if (child == 0) ::_exit(read_piece() && read_text() && seek() && read_piece() ? 0 : 1);
    int status = 0;
    if (child < 0 || ::waitpid(child, &status, 0) != child || status != 0) return false;
    return seek();  // The child moved the position under the stream.
  }

  bool reopen() {
    doing_ = "freopen";
    const bool by_name = upto(1) == 0;
    const char* managed = by_name ? managed_path_.c_str() : nullptr;
    const char* model = by_name ? model_path_.c_str() : nullptr;
    const int before = ::fileno(open_.managed);
    const auto open_again = upto(1) == 0 ? &std::freopen : &::freopen64;
    open_.managed = open_again(managed, "r", open_.managed);
    open_.model = open_again(model, "r", open_.model);
    return open_.managed != nullptr && open_.model != nullptr && ::fileno(open_.managed) == before;
  }

  std::mt19937 random_;
  const std::string managed_path_;
  const std::string model_path_;
  Pair open_;
  const char* doing_ = "";
};

/// fmemopen: no descriptor, which is no error of the program's.
bool is_errno_kept_without_descriptor() {
  std::array<char, 5> content = {'b', 'y', 't', 'e', 's'};
  std::array<char, 8> into{};
  FILE* stream = ::fmemopen(content.data(), content.size(), "r");
  if (stream == nullptr) return false;
  errno = 0;
  const bool is_read = std::fread(into.data(), 1, into.size(), stream) == content.size() &&
                       ::fread_unlocked(into.data(), 1, 1, stream) == 0;
  const int after_read = errno;
  return is_read && std::fclose(stream) == 0 && after_read == 0 && errno == 0;
}

/// A thread that waits in fread is cancelled, as without Forebay.
bool is_waiting_reader_cancelled() {
  std::array<int, 2> ends{};
  if (::pipe(ends.data()) != 0) return false;
  FILE* stream = ::fdopen(ends[0], "r");
  pthread_t reader{};
  const auto read_one = [](void* from) -> void* {
    char byte = 0;
    return std::fread(&byte, 1, 1, static_cast<FILE*>(from)) == 1 ? from : nullptr;
  };
  void* result = nullptr;
  return stream != nullptr && ::pthread_create(&reader, nullptr, read_one, stream) == 0 &&
         ::pthread_cancel(reader) == 0 && ::pthread_join(reader, &result) == 0 &&
         result == PTHREAD_CANCELED;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) return 2;
  if (!is_errno_kept_without_descriptor() || !is_waiting_reader_cancelled()) {
    std::fprintf(stderr, "a stream that is nobody's differs\n");
    return 1;
  }
  RandomStreams streams(static_cast<unsigned>(std::strtoul(argv[1], nullptr, 10)), argv[3],
                        argv[4]);
  return streams.run(static_cast<int>(std::strtol(argv[2], nullptr, 10))) ? 0 : 1;
}
