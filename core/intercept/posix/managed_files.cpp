#include "core/intercept/posix/managed_files.hpp"

#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "core/intercept/posix/complaint.hpp"
#include "core/intercept/posix/declared_reads.hpp"
#include "core/intercept/posix/endings.hpp"
#include "core/intercept/posix/exported.hpp"
#include "core/intercept/posix/internal_descriptors.hpp"
#include "core/intercept/posix/opened_name.hpp"
#include "core/intercept/posix/own_heap.hpp"
#include "core/intercept/posix/prefetch_record.hpp"
#include "core/intercept/posix/program_memory.hpp"
#include "core/intercept/posix/read_ahead.hpp"
#include "core/intercept/posix/record_file.hpp"
#include "core/intercept/posix/recorded_reads.hpp"
#include "core/intercept/posix/registry.hpp"
#include "core/intercept/posix/ways_to_fetch.hpp"
#include "core/intercept/posix/while_memory_lasts.hpp"
#include "core/model/read_intent.hpp"
#include "core/storage/file_version.hpp"
#include "core/storage/record_locks.hpp"
#include "core/storage/thread_waits.hpp"

namespace forebay::posix {

constinit thread_local bool fetches_later = false;

extern "C" FOREBAY_EXPORTED void forebay_fetch_later(int is_on) noexcept {
  fetches_later = is_on != 0;
}

namespace {

/// Read when the library is loaded; never destroyed.
const DeclaredReads* declared = nullptr;

/// What a listed descriptor is served from; null if this call must not be served.
struct Access {
  ManagedFile* managed = nullptr;
  std::shared_ptr<ServedFile> file = nullptr;  ///< Null: advised is there, which serves nothing.
  std::shared_ptr<AdvisedFile> advised = nullptr;
  std::shared_ptr<EarlierReads> earlier = nullptr;
  std::unique_lock<std::mutex> lock;
  FileVersion version;
};

/// For a read of `count` bytes at `offset`.
std::optional<Access> access_to(int descriptor, off_t offset, size_t count) {
  ManagedFile* managed = listed(descriptor);
  Registry& state = *registry.load();
  if (managed == nullptr || managed->is_over || !is_own_process(state) || state.is_stuck) {
    return std::nullopt;
  }
  if (managed->is_undecided && !may_decide(descriptor, offset)) return std::nullopt;
  // Without a lock: a file server may never answer.
  if (managed->times_tell_late && !write_out(descriptor, {offset, static_cast<Bytes>(count)})) {
    return std::nullopt;
  }
  const auto version = version_of(descriptor);
  if (!version) return std::nullopt;
  if (managed->is_undecided) decide(descriptor, *version, offset);
  Access access{.managed = managed, .lock = std::unique_lock(managed->mutex), .version = *version};
  if (listed(descriptor) != managed) return std::nullopt;
  const auto presence = managed->followed.presence;
  if (presence != nullptr && presence->has_company()) {
    access.lock.unlock();
    share(descriptor, offset);
    access.lock.lock();
    if (listed(descriptor) != managed) return std::nullopt;
  }
  access.file = managed->followed.file;
  access.advised = managed->followed.advised;
  access.earlier = managed->earlier;
  if (access.file == nullptr && access.advised == nullptr) return std::nullopt;
  return access;
}

/// A read that the kernel is to serve.
void note(const Access& access, Extent read) {
  if (!access.advised->note(read)) access.managed->is_over = true;
}

size_t serve(Access& access, int descriptor, void* buffer, size_t count, off_t offset) {
  access.lock.unlock();
  const auto served = access.file->serve({static_cast<std::byte*>(buffer), count}, offset,
                                         access.version, file_clock_ns());
  if (served.room) access.file->wake();
  if (served.asks) {
    waits_when_asked = waits_of_thread();
    access.managed->asker.store(&waits_when_asked);
  }
  if (served.over) {
    // Another thread may have moved it to another way meanwhile.
    access.lock.lock();
    if (access.managed->followed.file == access.file) access.managed->is_over = true;
    access.lock.unlock();
  }
  if (served.left) {
    go_on(descriptor, offset, served);
  } else if (access.earlier != nullptr &&
             access.earlier->add({offset, static_cast<Bytes>(count)}, served.wanted)) {
    read_again(descriptor, offset, *access.earlier);
  }
  return static_cast<size_t>(served.bytes);
}

/// A signal handler forks, and what it interrupted may hold the locks: they cannot be taken. The
/// child then leaves our state alone, as one that was forked past us. Forks may nest.
constinit thread_local int forks_past_us = 0;

void before_fork() {
  Registry& state = *registry.load();
  if (inside || !is_own_process(state)) {
    ++forks_past_us;
    return;
  }
  inside = true;  // Who handles a signal while the locks are held must not want them.
  RegistryLock lock(state);
  if (!lock) {
    inside = false;
    ++forks_past_us;
    return;
  }
  lock.keep();
  lock_heap();
}

void after_fork_in_parent() {
  if (forks_past_us > 0) {
    --forks_past_us;
    return;
  }
  unlock_heap();
  Registry& state = *registry.load();
  for (ManagedFile* managed : state.files) managed->position_is_shared = true;
  state.mutex.unlock();
  inside = false;
}

void after_fork_in_child() {
  watch_first_thread();  // It is the one that forked.
  if (forks_past_us > 0) {
    --forks_past_us;
    return;
  }
  unlock_heap();
  const Registry& parents = *registry.load();
  close_internal();
  Registry* own = nullptr;
  while_memory_lasts([&] {
    auto made = std::make_unique<Registry>();
    made->late_devices = parents.late_devices;
    own = made.release();
  });
  Inherited inherited;
  for (unsigned fd = 0; fd < parents.listed_end; ++fd) {
    const ManagedFile* before = detail::listed_files[fd].exchange(nullptr);
    if (before == nullptr || own == nullptr) continue;
    while_memory_lasts([&] { inherit(*own, static_cast<int>(fd), *before, inherited); });
  }
  if (own != nullptr) registry.store(own);  // Else it is none of this process.
  inside = false;
}

/// Where there is no memory for an exception, throwing it ends the program. The C++ library, which
/// is a part of this one, keeps some for that, but gets it only after load(): so the C library's
/// heap must have both, what is thrown until then and what is kept. It does not give back what is
/// as short as this.
bool has_memory_for_exceptions() {
  constexpr std::size_t kept = std::size_t{96} << 10;
  constexpr std::size_t enough = std::size_t{1} << 20;
  // Volatile: else nothing is asked for.
  void* const volatile in_heap = std::malloc(kept);
  void* const volatile place = std::malloc(enough);
  std::free(place);
  std::free(in_heap);
  return in_heap != nullptr && place != nullptr;
}

/// It lets one thread run at a time, and goes on with another one where it knows that a call waits:
/// for io_uring_enter(2) it does not (valgrind 3.19).
bool is_in_valgrind() {
  const char* preloads = std::getenv("LD_PRELOAD");
  return preloads != nullptr && std::strstr(preloads, "vgpreload_core") != nullptr;
}

[[gnu::constructor(102)]] void load() {
  const Inside guard;
  if (!has_memory_for_exceptions()) return;
  while_memory_lasts([] {
    know_error_stream();
    know_report_directory();
    const char* uring = std::getenv("FOREBAY_IO_URING");
    uses_uring = (uring == nullptr || std::strcmp(uring, "0") != 0) && !is_in_valgrind();
    const char* record = std::getenv("FOREBAY_RECORD_READS");
    const bool is_recorded = record != nullptr && std::strcmp(record, "1") == 0;
    if (!is_recorded) declared = DeclaredReads::load();
    if (declared == nullptr && !is_recorded) return;
    registry.store(new Registry);
    recording = is_recorded;
    if (declared != nullptr && process_has_record_locks()) takes_record_lock();
    ::pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
    watch_first_threads();
  });
}

/// Of each file once.
void tell_unfit(const FileVersion& version, const char* path,
                const DeclaredReads::Sections& sections) {
  {
    Registry& state = *registry.load();
    const RegistryLock lock(state);
    if (!lock) return;
    constexpr std::size_t most_compared = 1024;
    if (state.compared.size() == most_compared) state.compared.clear();
    if (!state.compared.insert({version.id, version.size, sections}).second) return;
  }
  const auto unfit = unfit_reads(sections, version.size);
  if (!unfit.empty()) write_mistakes_record(path, unfit);
}

void look_at(int descriptor, int directory, const char* path, int flags, Reader reader) {
  if (!is_own_process(*registry.load())) return;
  // It was closed behind our back. What is opened may be the same file, in another way.
  if (listed(descriptor) != nullptr) close_listed(descriptor);
  struct stat status{};
  if (::fstat(descriptor, &status) != 0 || !S_ISREG(status.st_mode) || (flags & O_PATH) != 0) {
    return;
  }
  const FileVersion version = version_in(status);
  const OpenedName name(descriptor, directory, path);
  if (recording) {
    if ((flags & O_ACCMODE) == O_RDONLY) record(descriptor, version, name.named(), reader);
    return;
  }
  const auto sections = declared->sections_for(name, version.size);
  const bool writes = (flags & O_ACCMODE) != O_RDONLY;
  // It may have had another size when it was opened for reading.
  if (sections.empty() && !(writes && declared->goes_by_size())) return;
  if (writes) {
    const bool was_served = stop_serving(version.id);
    const bool reads = (flags & O_ACCMODE) == O_RDWR && (flags & O_TRUNC) == 0;
    if (reads && !was_served && !sections.empty()) {
      leave_alone(name.named(), "it was opened for writing");
    }
  } else if ((flags & (O_DIRECT | O_SYNC | O_DSYNC)) != 0) {
    leave_alone(name.named(), "it was opened with O_DIRECT, O_SYNC or O_DSYNC");
  } else {
    declared->tell(sections, fetches_later);
    manage(descriptor, version, name.named(), sections, reader);
    tell_unfit(version, name.named(), sections);
  }
}

}  // namespace

void opened(int descriptor, int directory, const char* path, int flags, Reader reader) {
  if (registry.load() == nullptr || inside) return;
  if (static_cast<unsigned>(descriptor) >= most_descriptors) return;
  const int before = errno;
  const Inside guard;
  while_memory_lasts([&] { look_at(descriptor, directory, path, flags, reader); });
  errno = before;
}

bool is_kept(int descriptor) {
  // A child that shares our memory has descriptors of its own.
  return is_internal(descriptor) && is_own_process(*registry.load());
}

bool is_hidden(int descriptor) { return is_kept(descriptor) && !inside; }

void closing(int descriptor) {
  if (listed(descriptor) == nullptr || !is_own_process(*registry.load())) return;
  const int before = errno;
  if (recording) stream_read(descriptor);
  if (inside) {
    // A signal handler closes what the program below it may be working on: no lock can be taken.
    abandon(*registry.load(), descriptor);
  } else {
    const Inside guard;
    while_memory_lasts([&] { close_listed(descriptor); });
  }
  errno = before;
}

void past_caches(int descriptor) {
  ManagedFile* managed = listed(descriptor);
  if (managed == nullptr || !is_own_process(*registry.load())) return;
  managed->is_over = true;  // By its duplicates, too.
  closing(descriptor);
}

void closing_range(unsigned first, unsigned last) {
  const Registry* state = registry.load();
  if (state == nullptr) return;
  const unsigned end = std::min(state->listed_end.load(), most_descriptors);
  for (unsigned fd = first; fd < end && fd <= last; ++fd) {
    if (listed(static_cast<int>(fd)) != nullptr) closing(static_cast<int>(fd));
  }
}

void duplicated(int descriptor, int copy) {
  Registry& state = *registry.load();
  if (inside || static_cast<unsigned>(copy) >= most_descriptors || !is_own_process(state)) return;
  const Inside guard;
  const RegistryLock lock(state);
  ManagedFile* managed = lock ? listed(descriptor) : nullptr;
  if (managed != nullptr && listed(copy) == nullptr) list(state, copy, managed);
}

Serve serve_at(int descriptor, void* buffer, size_t count, off_t offset) {
  if (inside) return {};
  const Inside guard;
  Serve result;
  while_memory_lasts([&] {
    auto access = access_to(descriptor, offset, count);
    const off_t rest = access ? access->version.size - offset : 0;
    if (rest <= 0) return;
    const size_t most = std::min(count, static_cast<size_t>(rest));
    if (access->advised != nullptr) {
      note(*access, {offset, static_cast<Bytes>(most)});
      result.is_followed = true;
    } else if (can_be_written(buffer, most)) {
      result.is_followed = true;
      result.bytes = serve(*access, descriptor, buffer, most, offset);
    }
  });
  return result;
}

PositionedServe serve_next(int descriptor, void* buffer, size_t count) {
  if (inside) return {};
  const Inside guard;
  PositionedServe result;
  while_memory_lasts([&] {
    const ManagedFile* managed = listed(descriptor);
    // What is read so is not served, and decides nothing.
    if (managed == nullptr || managed->is_over ||
        (managed->position_is_shared && managed->is_undecided)) {
      return;
    }
    const off_t position = ::lseek(descriptor, 0, SEEK_CUR);
    auto access = access_to(descriptor, position, count);
    const off_t size = access ? access->version.size : 0;
    if (position < 0 || position >= size) return;
    const size_t claimed = std::min(count, static_cast<size_t>(size - position));
    if (access->advised != nullptr) {
      note(*access, {position, static_cast<Bytes>(claimed)});
      result.is_followed = true;
      return;
    }
    if (access->managed->position_is_shared || !can_be_written(buffer, claimed)) return;
    // One step forward, as read() would go: whoever moves the position at the same time comes
    // before or after it.
    const off_t after = ::lseek(descriptor, static_cast<off_t>(claimed), SEEK_CUR);
    const off_t offset = after - static_cast<off_t>(claimed);
    if (after < 0 || after > size) {
      if (after >= 0) ::lseek(descriptor, -static_cast<off_t>(claimed), SEEK_CUR);
      return;
    }
    // Whatever comes of it, the position is past it.
    result = {.claimed = claimed, .offset = offset, .is_followed = true};
    if (offset != position && managed->times_tell_late) return;  // Other pages were written out.
    result.bytes = serve(*access, descriptor, buffer, claimed, offset);
  });
  return result;
}

}  // namespace forebay::posix
