// Makes random calls by a C stream, and says on its standard output what a trace must have of them:
// a line each, with the call, where its bytes begin by ftell(), and how many they are. Calls:
// fread, fgets, getline, getdelim, fscanf, fgetc, getc_unlocked (inline), ungetc, fwrite, fputs,
// fprintf, fputc, putc_unlocked (inline), fseek, rewind, fsetpos, fflush, fclose, with buffers of
// all kinds.
//
// usage: traced_streams SEED CALLS FILE; traced_streams threads CALLS FILE: four threads write
// lines by one stream, at the same time; traced_streams cancelled CALLS FILE and traced_streams
// jumps CALLS FILE: between its calls threads are cancelled in others, or a signal handler jumps
// out of them.

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace {

template <typename Call>
void told(FILE* stream, const char* name, Call call) {
  const long before = std::ftell(stream);
  call();
  std::printf("%s %ld %ld\n", name, before, std::ftell(stream) - before);
}

class RandomCalls {
 public:
  RandomCalls(unsigned seed, const char* path) : random_(seed), stream_(std::fopen(path, "w+")) {
    constexpr std::array kinds = {_IOFBF, _IOFBF, _IOLBF, _IONBF};
    const long kind = upto(kinds.size());  // One more: as the C library has it.
    if (kind < static_cast<long>(kinds.size())) {
      buffer_.resize(static_cast<std::size_t>(100 + upto(20'000)));
      std::setvbuf(stream_, kind == 3 ? nullptr : buffer_.data(),
                   kinds[static_cast<std::size_t>(kind)], buffer_.size());
    } else {
      has_zeros_ = seed % 2 == 1;
    }
  }

  void run(int calls) {
    for (int i = 0; i < 20; ++i) write();
    for (int i = 0; i < calls; ++i) {
      if (upto(8) == 0) {
        seek();
        is_reading_ = upto(2) != 0;
      } else if (upto(30) == 0) {
        tell_characters();
        std::fflush(nullptr);
      } else if (upto(30) == 0) {
        std::fflush(stream_);
      } else {
        is_reading_ ? read() : write();
      }
    }
    std::fclose(stream_);
  }

 private:
  long upto(long most) { return std::uniform_int_distribution<long>(0, most)(random_); }

  template <typename Call>
  void told(const char* name, Call call) {
    ::told(stream_, name, call);
  }

  /// By a call of another kind: what takes the stream elsewhere leaves none to be told later.
  void tell_characters() {
    if (is_reading_) {
      told("fread", [&] { std::fread(room_.data(), 1, 1, stream_); });
    } else {
      const auto count = static_cast<std::size_t>(2 + upto(2));  // Of one the compiler makes fputc.
      told("fwrite", [&] { std::fwrite("||||", 1, count, stream_); });
    }
  }

  /// Words, numbers and lines, short ones and such as no buffer holds.
  std::string text(bool may_have_zeros) {
    std::string made;
    const long words = upto(12);
    for (long i = 0; i < words; ++i) {
      const long length = upto(40) == 0 ? upto(12'000) : upto(12);
      made += upto(2) == 0 ? std::to_string(upto(1'000'000))
                           : std::string(static_cast<std::size_t>(length), 'w');
      made += upto(3) == 0 ? '\n' : ' ';
      if (may_have_zeros && upto(6) == 0) made += '\0';
    }
    return made;
  }

  void write() {
    const std::string written = text(false);
    switch (upto(4)) {
      case 0: {
        const std::string any = text(has_zeros_);
        return told("fwrite", [&] { std::fwrite(any.data(), 1, any.size(), stream_); });
      }
      case 1:
        return told("fputs", [&] { std::fputs(written.c_str(), stream_); });
      case 2:
        return told("fprintf", [&] { std::fprintf(stream_, "<%s>%d", written.c_str(), 77); });
      case 3:
        return told("fputc", [&] {
          for (const char each : written) std::fputc(each, stream_);
        });
      default:
        return told("fputc", [&] {
          for (const char each : written) putc_unlocked(each, stream_);
        });
    }
  }

  void read() {
    const long count = upto(4) == 0 ? upto(10'000) : upto(60);
    switch (upto(9)) {
      case 0:
        return told("fread",
                    [&] { std::fread(room_.data(), 1, static_cast<std::size_t>(count), stream_); });
      case 1: {  // Of a piece of an item, at the end of the file, nothing is told.
        const long before = std::ftell(stream_);
        const auto items = static_cast<std::size_t>(count / 8);
        const auto read = static_cast<long>(std::fread(room_.data(), 8, items, stream_));
        std::printf("fread %ld %ld\n", before, read * 8);
        return;
      }
      case 2: {  // Of a string with zeros in it one buffer can tell the length.
        const long room = 2 + (has_zeros_ ? count % 90 : count);
        return told("fgets", [&] {
          if (std::fgets(room_.data(), static_cast<int>(room), stream_) == nullptr) return;
        });
      }
      case 3:
        return told("getline", [&] { ::getline(&line_, &line_room_, stream_); });
      case 4:
        return told("getdelim", [&] { ::getdelim(&line_, &line_room_, '7', stream_); });
      case 5:
        return told("fscanf", [&] {
          int number = 0;
          if (std::fscanf(stream_, "%d", &number) != 1) return;
        });
      case 6:
        return told("fscanf", [&] {
          if (std::fscanf(stream_, "%*s%*[^7]") != 0) return;
        });
      case 7:
        return told("fgetc", [&] {
          for (long i = 0; i < count && std::fgetc(stream_) != EOF;) ++i;
        });
      case 8:
        return told("fgetc", [&] {
          for (long i = 0; i < count && getc_unlocked(stream_) != EOF;) ++i;
        });
      default:
        tell_characters();
        if (std::ftell(stream_) > 0) std::ungetc('#', stream_);
        return told("fread", [&] { std::fread(room_.data(), 1, 10, stream_); });
    }
  }

  void seek() {
    std::fpos_t here;
    std::fgetpos(stream_, &here);
    std::fseek(stream_, 0, SEEK_END);
    std::printf("fseek %ld 0\n", std::ftell(stream_));
    const long size = std::ftell(stream_);
    if (upto(5) == 0) {
      std::rewind(stream_);
    } else if (upto(5) == 0) {
      std::fsetpos(stream_, &here);
    } else {
      std::fseek(stream_, upto(size), SEEK_SET);
    }
    std::printf("fseek %ld 0\n", std::ftell(stream_));
  }

  std::mt19937 random_;
  bool has_zeros_ = false;
  std::vector<char> buffer_;
  FILE* stream_;
  bool is_reading_ = false;
  std::array<char, 20'000> room_{};
  char* line_ = nullptr;
  std::size_t line_room_ = 0;
};

void write_at_once(int calls, const char* path) {
  FILE* stream = std::fopen(path, "w");
  std::vector<std::thread> threads;
  for (int number = 0; number < 4; ++number) {
    threads.emplace_back([=] {
      for (int i = 0; i < calls; ++i) std::fprintf(stream, "line %d of %d\n", i, number);
    });
  }
  for (auto& thread : threads) thread.join();
  std::fclose(stream);
}

/// Fills the buffer, and is cancelled as it is emptied.
void* write_until_cancelled(void* stream) {
  const std::string longer(150, 'c');
  ::pthread_cancel(::pthread_self());
  std::fwrite(longer.data(), 1, longer.size(), static_cast<FILE*>(stream));
  return nullptr;
}

void is_cancelled(FILE* stream) {
  pthread_t thread{};
  ::pthread_create(&thread, nullptr, write_until_cancelled, stream);
  ::pthread_join(thread, nullptr);
}

sigjmp_buf before_fault;

/// Prints a text that cannot be read, behind one that can.
void jumps_out(FILE* stream) {
  constexpr std::size_t page = 4096;
  static const auto* unreadable = static_cast<const char*>(
      ::mmap(nullptr, page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  ::signal(SIGSEGV, [](int) { siglongjmp(before_fault, 1); });
  if (sigsetjmp(before_fault, 1) == 0) std::fprintf(stream, "text: %s", unreadable);
}

/// By a stream whose calls `leave` leaves by no return.
void write_around(void (*leave)(FILE*), int calls, const char* path) {
  FILE* stream = std::fopen(path, "w");
  std::array<char, 100> buffer{};
  std::setvbuf(stream, buffer.data(), _IOFBF, buffer.size());
  for (int i = 0; i < calls; ++i) {
    told(stream, "fprintf", [=] { std::fprintf(stream, "line %d\n", i); });
    leave(stream);
    told(stream, "fwrite", [=] { std::fwrite("||", 1, 2, stream); });
    told(stream, "fputc", [=] {
      for (int each = 0; each < 30; ++each) std::fputc('.', stream);
    });
  }
  std::fclose(stream);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  const std::string how = argv[1];
  if (how == "threads") {
    write_at_once(std::atoi(argv[2]), argv[3]);
  } else if (how == "cancelled") {
    write_around(is_cancelled, std::atoi(argv[2]), argv[3]);
  } else if (how == "jumps") {
    write_around(jumps_out, std::atoi(argv[2]), argv[3]);
  } else {
    RandomCalls(static_cast<unsigned>(std::atoi(argv[1])), argv[3]).run(std::atoi(argv[2]));
  }
  return 0;
}
