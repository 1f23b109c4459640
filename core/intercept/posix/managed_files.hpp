#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace forebay::posix {

class ManagedFile;

/// Descriptors from here on are never managed.
constexpr unsigned most_descriptors = 65536;

namespace detail {
/// What stands behind each descriptor of the program; null: nothing of ours.
extern std::array<std::atomic<ManagedFile*>, most_descriptors> listed_files;
/// There are mappings of listed files.
extern std::atomic<bool> has_mappings;
}  // namespace detail

/// The one question that every call asks of its descriptor.
inline ManagedFile* listed(int descriptor) {
  const auto index = static_cast<unsigned>(descriptor);
  if (index >= most_descriptors) return nullptr;
  return detail::listed_files[index].load(std::memory_order_acquire);
}

/// By what the program reads.
enum class Reader {
  calls,   ///< read() and its kin.
  stream,  ///< A C stream, whose reads are not seen.
};

/// After the program opened `descriptor` as `path` with `flags`: reads it ahead if the intent says
/// so. errno stays.
void opened(int descriptor, int directory, const char* path, int flags,
            Reader reader = Reader::calls);

/// `descriptor` is ours: nobody else closes it.
bool is_kept(int descriptor);

/// The same, and the calling code is the program's: for that nothing is behind it.
bool is_hidden(int descriptor);

/// What this thread opens is to be fetched from when it is read (later_fetch.hpp).
extern constinit thread_local bool fetches_later;

/// A C stream reads by the listed `descriptor` from now on. errno stays.
void is_stream(int descriptor);

/// The listed `descriptor` is shown at `address`, and cannot be stored in; or, where there are
/// mappings, something else will be, or nothing, or it can. errno stays.
void mapped(int descriptor, void* address, size_t length, off_t offset);
void unmapped(void* address, size_t length);

/// FOREBAY_RECORD_READS: what is read is written down, and nothing is read ahead.
extern bool recording;
/// As FOREBAY_IO_URING had it when the library was loaded.
extern bool uses_uring;

// Between two seeks a C stream reads on and on, by whatever call: what is written down of it is how
// far it came, told where it is sought and where it ends. All for listed descriptors, while
// recording; errno stays. Nothing of it happens in a signal handler that interrupted a call of
// ours.

/// The stream of `descriptor` is about to be sought, or to end.
void stream_read(int descriptor);
/// The same with Inside.
void stream_read_inside(int descriptor);
/// It was sought: the program is at `position`, and the stream may have read on from there.
void stream_sought(int descriptor, off_t position);

/// Before the program's descriptor is closed, and before another takes its number.
void closing(int descriptor);
/// What stands behind `descriptor` is read past all caches from now on (O_DIRECT).
void past_caches(int descriptor);
void closing_range(unsigned first, unsigned last);

/// After `copy` was made a duplicate of `descriptor`.
void duplicated(int descriptor, int copy);

/// A read at `offset` of a listed descriptor.
struct Serve {
  size_t bytes = 0;          ///< From its beginning.
  bool is_followed = false;  ///< It was compared with what was foreseen.
};
Serve serve_at(int descriptor, void* buffer, size_t count, off_t offset);

/// A read at the descriptor's position. Served: the position is past `bytes`, and `offset` is where
/// they came from; the rest of `claimed` is the caller's to read there, or to give back.
struct PositionedServe {
  size_t bytes = 0;
  size_t claimed = 0;
  off_t offset = 0;
  bool is_followed = false;
};
PositionedServe serve_next(int descriptor, void* buffer, size_t count);

/// After the kernel delivered `moved` bytes in `ns` from `offset` on to a read of a listed
/// descriptor, or, if it is negative, from where the position was. `is_followed`: as above. errno
/// stays.
void was_read(int descriptor, off_t offset, ssize_t moved, std::int64_t ns, bool is_followed);

}  // namespace forebay::posix
