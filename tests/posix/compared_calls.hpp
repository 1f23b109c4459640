#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstring>

/// Two descriptors, one of a file that is read ahead and one of its model.
struct Pair {
  int managed = -1;
  int model = -1;
  bool writable = false;
  std::size_t file = 0;  ///< Which of them all.
};

/// What a call gave.
struct Outcome {
  long long result = 0;
  int error = 0;
  bool operator==(const Outcome&) const = default;
};

/// The same calls on the two files of pairs.
class ComparedCalls {
 protected:
  static constexpr std::size_t most_room = std::size_t{2} << 20;  ///< Bytes of one read.

  template <typename Call>
  static Outcome outcome(Call call) {
    errno = 0;
    const long long result = call();
    return {result, errno};
  }

  /// Whether both gave the same, and, unless they failed, the same in the first `room` bytes of
  /// their buffers.
  bool equal(const Outcome& managed, const Outcome& model, std::size_t room = 0) const {
    const bool same_bytes = model.result < 0 || std::memcmp(managed_room_, model_room_, room) == 0;
    if (managed == model && same_bytes) return true;
    std::fprintf(stderr, "managed: %lld, errno %d; model: %lld, errno %d; bytes %s\n",
                 managed.result, managed.error, model.result, model.error,
                 same_bytes ? "equal" : "differ");
    return false;
  }

  /// The same call on both files of a pair, with room for what is read; then both are at the same
  /// position.
  template <typename Call>
  bool same(const Pair& pair, std::size_t room, Call call) {
    std::memset(managed_room_, 'x', room);
    std::memset(model_room_, 'x', room);
    const Outcome managed = outcome([&] { return call(pair.managed, managed_room_); });
    const Outcome model = outcome([&] { return call(pair.model, model_room_); });
    const auto position = [](int fd) { return outcome([fd] { return ::lseek(fd, 0, SEEK_CUR); }); };
    return equal(managed, model, room) && equal(position(pair.managed), position(pair.model));
  }

  /// The same call by both names, or with both numbers, which returns a descriptor or fails.
  template <typename Managed, typename Model>
  bool same_success(Managed managed, Model model, Pair& made) {
    const Outcome ours = outcome(managed);
    const Outcome theirs = outcome(model);
    made.managed = static_cast<int>(ours.result);
    made.model = static_cast<int>(theirs.result);
    return equal({ours.result < 0 ? -1 : 0, ours.error},
                 {theirs.result < 0 ? -1 : 0, theirs.error});
  }

  static char* memory(std::size_t length, int protection) {
    return static_cast<char*>(
        ::mmap(nullptr, length, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  }

 private:
  // At the beginning of a page each: what is read past every cache is read to such places.
  char* const managed_room_ = memory(most_room, PROT_READ | PROT_WRITE);
  char* const model_room_ = memory(most_room, PROT_READ | PROT_WRITE);
};
