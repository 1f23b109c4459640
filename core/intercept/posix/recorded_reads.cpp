#include "core/intercept/posix/recorded_reads.hpp"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <memory>
#include <mutex>

#include "core/intercept/posix/managed_files.hpp"
#include "core/intercept/posix/read_ahead.hpp"
#include "core/intercept/posix/real_calls.hpp"
#include "core/intercept/posix/registry.hpp"
#include "core/intercept/posix/while_memory_lasts.hpp"
#include "core/model/read_trace.hpp"
#include "core/storage/thread_waits.hpp"

namespace forebay::posix {

namespace {

/// Where the kernel's position of `descriptor`, by which a stream reads, has moved since it was
/// known last: calls `moved` with the file, its lock held, and the position. errno stays. With
/// Inside: a signal handler that meets the lock would wait for what it interrupted.
template <typename Moved>
void follow_stream(int descriptor, Moved&& moved) {
  ManagedFile* managed = listed(descriptor);
  if (managed == nullptr || !is_own_process(*registry.load())) return;
  const int before = errno;
  {
    const std::lock_guard lock(managed->mutex);
    const bool is_one = managed->stream == descriptor && managed->followed.trace != nullptr;
    const off_t now = is_one ? real().lseek(descriptor, 0, SEEK_CUR) : -1;
    if (now >= 0 && now != managed->stream_read_to) {
      while_memory_lasts([&] { moved(*managed, now); });
      managed->stream_read_to = now;
    }
  }
  errno = before;
}

void tell_time(ManagedFile& managed, Bytes moved, std::int64_t ns) {
  std::shared_ptr<ServedFile> file;
  {
    const std::lock_guard lock(managed.mutex);
    file = managed.followed.file;
  }
  if (file != nullptr) while_memory_lasts([&] { file->took(moved, ns); });
}

}  // namespace

void record(int descriptor, const FileVersion& version, const char* path, Reader reader) {
  Registry& state = *registry.load();
  const RegistryLock lock(state);
  if (!lock) return;
  follow(state, descriptor,
         {.trace = std::make_shared<ReadTrace>(), .path = path, .version = version});
  if (reader == Reader::stream) record_stream(descriptor);
}

void record_stream(int descriptor) {
  ManagedFile* managed = listed(descriptor);
  if (managed == nullptr) return;
  const std::lock_guard lock(managed->mutex);
  managed->stream = descriptor;
  managed->stream_read_to = std::max<off_t>(real().lseek(descriptor, 0, SEEK_CUR), 0);
}

void stream_read_inside(int descriptor) {
  follow_stream(descriptor, [](ManagedFile& managed, off_t now) {
    const off_t from = managed.stream_read_to;
    if (now > from) managed.followed.trace->add({from, now - from});
  });
}

void stream_read(int descriptor) {
  if (inside) return;
  const Inside guard;
  stream_read_inside(descriptor);
}

void stream_sought(int descriptor, off_t position) {
  if (inside) return;
  const Inside guard;
  // Where it did not move, the stream had in its buffer what was sought.
  follow_stream(descriptor, [position](ManagedFile& managed, off_t now) {
    if (position >= 0 && position < now) managed.followed.trace->add({position, now - position});
  });
}

void was_read(int descriptor, off_t offset, ssize_t moved, std::int64_t ns, bool is_followed) {
  ManagedFile* managed = listed(descriptor);
  if (managed == nullptr) return;
  managed->by_kernel.count(moved, ns, is_followed);
  const long* const asker = managed->asker.load(std::memory_order_relaxed) == nullptr
                                ? nullptr
                                : managed->asker.exchange(nullptr);
  const bool asks_time = asker != nullptr;
  if ((!recording && !asks_time) || moved <= 0 || inside) return;
  if (!is_own_process(*registry.load())) return;
  const int before = errno;
  const Inside guard;
  // The answer may be another thread's, of whose waits nothing is known.
  const bool waited = asker != &waits_when_asked || may_have_waited(waits_when_asked);
  if (asks_time) tell_time(*managed, moved, waited ? ns : 0);
  {
    const std::lock_guard lock(managed->mutex);
    const off_t from = offset >= 0 ? offset : real().lseek(descriptor, 0, SEEK_CUR) - moved;
    if (managed->followed.trace != nullptr && from >= 0) {
      while_memory_lasts([&] { managed->followed.trace->add({from, moved}); });
      if (managed->stream == descriptor) managed->stream_read_to = from + moved;
    }
  }
  errno = before;
}

}  // namespace forebay::posix
