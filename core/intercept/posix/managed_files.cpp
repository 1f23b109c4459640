#include "core/intercept/posix/managed_files.hpp"

#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "core/engine/prefetch/adviser.hpp"
#include "core/engine/prefetch/node_readers.hpp"
#include "core/engine/prefetch/page_cache_fetch.hpp"
#include "core/engine/prefetch/prefetcher.hpp"
#include "core/intercept/posix/cancellation.hpp"
#include "core/intercept/posix/declared_reads.hpp"
#include "core/intercept/posix/followed.hpp"
#include "core/intercept/posix/internal_descriptors.hpp"
#include "core/intercept/posix/opened_name.hpp"
#include "core/intercept/posix/program_memory.hpp"
#include "core/model/read_intent.hpp"
#include "core/model/read_trace.hpp"
#include "core/plan/block_advice.hpp"
#include "core/plan/extent_advice.hpp"
#include "core/storage/descriptor.hpp"
#include "core/storage/fetch_source.hpp"
#include "core/storage/file_version.hpp"
#include "core/storage/read_progress.hpp"
#include "core/storage/read_queue.hpp"

namespace forebay::posix {

namespace detail {
std::array<std::atomic<ManagedFile*>, most_descriptors> listed_files{};
}  // namespace detail

/// An open file description of the program that is read ahead, or whose reads are written down; all
/// duplicates of a descriptor share it. Used again for another file, but never freed: a thread that
/// found it in the table may still come when another has closed the descriptor.
class ManagedFile {
 public:
  std::mutex mutex;  ///< Held while the position is moved.
  /// Guarded by mutex. One of the three is there, or, in the pool, none.
  Followed followed;
  FileId id;  ///< Guarded by the registry's mutex, as is what follows.
  int descriptors = 0;
  /// Another process has the position too, since a fork: only the kernel can move it.
  std::atomic<bool> position_is_shared{false};
  std::atomic<bool> is_over{false};  ///< Nothing will be served any more.
};

namespace {

constexpr Bytes memory_of_a_process = 64 * MiB;
constexpr int requests_under_way = 32;

/// True in a call of ours that calls the C library, and in a call from a signal handler that
/// interrupted one: then files are not managed.
thread_local bool inside = false;

class Inside {
 public:
  Inside() { inside = true; }
  ~Inside() { inside = false; }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;

 private:
  NotCancelled not_cancelled_;
};

/// A file that the program has mapped.
struct ShownFile {
  std::uintptr_t begin;
  std::uintptr_t end;
  std::shared_ptr<AdvisedFile> file;
  std::shared_ptr<ReadProgress> progress;
};

/// Beyond so many at a time mappings are left to the kernel.
constexpr std::size_t most_mappings = 64;
/// There are any: what a call must ask first.
std::atomic<bool> has_mappings{false};

/// All that is known of a process. A forked child begins with a new one and leaves its parent's
/// behind, whose locks may be held by threads that it does not have.
struct Registry {
  std::mutex mutex;
  pid_t process = ::getpid();
  std::unique_ptr<Prefetcher> prefetcher;  ///< Guarded by mutex, as is what follows.
  bool prefetcher_failed = false;
  std::vector<int> queue_descriptors;                 ///< Of the prefetcher.
  std::unique_ptr<Adviser> adviser;                   ///< Null before the first file for it.
  std::vector<std::unique_ptr<Adviser>> ended;        ///< Readers may still come to them.
  std::vector<std::unique_ptr<Prefetcher>> gave_way;  ///< Readers may still call wake() of them.
  std::vector<ManagedFile*> files;                    ///< All there ever were.
  std::vector<ManagedFile*> pool;                     ///< Of them, those without a file.
  unsigned listed_end = 0;  ///< No descriptor from here on was ever listed.
  std::vector<ShownFile> mappings;
};

/// Never destroyed: programs read in their exit handlers too.
std::atomic<Registry*> registry{nullptr};

/// Read when the library is loaded; never destroyed.
const DeclaredReads* declared = nullptr;
/// FOREBAY_RECORD_READS: what is read is written down, and nothing is read ahead.
bool recording = false;

/// A child that shares our memory (vfork), or was forked past us, must leave our state alone.
bool is_own_process(const Registry& state) { return ::getpid() == state.process; }

Prefetcher* prefetcher_of(Registry& state) {
  if (state.prefetcher != nullptr || state.prefetcher_failed) return state.prefetcher.get();
  const char* uring = std::getenv("FOREBAY_IO_URING");
  std::unique_ptr<ReadQueue> queue;
  if (uring == nullptr || std::strcmp(uring, "0") != 0)
    queue = make_uring_queue(requests_under_way);
  if (queue == nullptr) queue = make_thread_queue(requests_under_way);
  state.queue_descriptors = queue->descriptors();
  for (const int descriptor : state.queue_descriptors) set_internal(descriptor, true);
  try {
    state.prefetcher = std::make_unique<Prefetcher>(std::move(queue), memory_of_a_process);
  } catch (const std::exception&) {  // No thread is to be had: nothing is read ahead.
    state.prefetcher_failed = true;
  }
  return state.prefetcher.get();
}

void list(Registry& state, int descriptor, ManagedFile* managed) {
  state.listed_end = std::max(state.listed_end, static_cast<unsigned>(descriptor) + 1);
  ++managed->descriptors;
  detail::listed_files[static_cast<unsigned>(descriptor)].store(managed, std::memory_order_release);
}

/// With the registry locked. What a last descriptor was of is handed back, for its record.
Followed unlist(Registry& state, int descriptor) {
  ManagedFile* managed = detail::listed_files[static_cast<unsigned>(descriptor)].exchange(nullptr);
  if (managed == nullptr || --managed->descriptors > 0) return {};
  Followed followed;
  {
    const std::lock_guard lock(managed->mutex);
    followed = std::exchange(managed->followed, {});
  }
  state.pool.push_back(managed);
  return followed;
}

void follow(Registry& state, int descriptor, FileId id, Followed followed) {
  if (state.pool.empty()) {
    state.files.push_back(new ManagedFile);
    state.pool.push_back(state.files.back());
  }
  ManagedFile* managed = state.pool.back();
  state.pool.pop_back();
  managed->id = id;
  managed->position_is_shared = false;
  managed->is_over = false;
  {
    const std::lock_guard lock(managed->mutex);
    managed->followed = std::move(followed);
  }
  list(state, descriptor, managed);
}

Adviser* adviser_of(Registry& state) {
  try {
    if (state.adviser == nullptr) state.adviser = std::make_unique<Adviser>([] { inside = true; });
  } catch (const std::system_error&) {  // No thread is to be had: no advice is given.
    return nullptr;
  }
  return state.adviser.get();
}

/// With the registry locked. Null: nothing can be told of this file.
std::shared_ptr<AdvisedFile> advise(Registry& state, int descriptor, const FileVersion& version,
                                    const std::string& path, const ReadIntent& wishes) {
  // The published method is measured as it was published.
  const bool is_published = wishes.policy == ReadPolicy::mercury;
  auto source = open_fetch_source(descriptor, path,
                                  is_published ? Through::page_cache : Through::widened_page_cache);
  Adviser* adviser = adviser_of(state);
  if (!source || adviser == nullptr) return nullptr;
  if (is_published) {
    BlockAdvice::Shape shape;
    shape.block = wishes.block.value_or(shape.block);
    shape.ahead = wishes.ahead.value_or(shape.ahead);
    if (wishes.budget) {
      shape.cached = static_cast<int>(std::clamp<Bytes>(*wishes.budget / shape.block, 1, INT_MAX));
    }
    return adviser->add(path, protect(*std::move(source)),
                        std::make_unique<BlockAdvice>(wishes.willneed, version.size, shape));
  }
  const Bytes budget = wishes.budget.value_or(Prefetcher::usual_budget);
  auto advice = std::make_unique<ExtentAdvice>(wishes.willneed, version.size, budget,
                                               wishes.gap.value_or(GapChoice{}).bytes);
  auto readers = NodeReaders::join(version, advice->plan().extents(), budget);
  auto fetch = std::make_unique<PageCacheFetch>(std::move(readers), version.size);
  return adviser->add(path, protect(*std::move(source)), std::move(advice), std::move(fetch));
}

/// Whether the kernel is to serve the reads, from its page cache.
bool is_for_page_cache(const ReadIntent& wishes, Reader reader) {
  if (wishes.policy == ReadPolicy::mercury) return true;
  return !wishes.willneed.empty() &&
         (wishes.policy == ReadPolicy::page_cache || reader == Reader::stream);
}

void manage(int descriptor, const FileVersion& version, const char* path,
            const DeclaredReads::Sections& sections, Reader reader) {
  Registry& state = *registry.load();
  const std::lock_guard lock(state.mutex);
  ReadIntent wishes = combined(sections);
  if (descriptors_run_short()) return;
  if (is_for_page_cache(wishes, reader)) {
    auto advised = advise(state, descriptor, version, path, wishes);
    if (advised == nullptr) return;
    if (reader == Reader::stream) {
      advised->watch(std::make_shared<PositionProgress>(descriptor, version.id));
    }
    return follow(state, descriptor, version.id, {.advised = std::move(advised)});
  }
  Prefetcher* prefetcher = prefetcher_of(state);
  if (prefetcher == nullptr) return;
  auto source = open_fetch_source(descriptor, path);
  if (!source) return;
  // No more memory than the file fills.
  const Bytes unit = std::min(wishes.block.value_or(Prefetcher::usual_block), GiB);
  const Bytes most = std::max(round_up(version.size, unit) + unit, 4 * unit);
  wishes.budget = std::min(wishes.budget.value_or(Prefetcher::usual_budget), most);
  auto file = prefetcher->add(path, protect(*std::move(source)), wishes);
  if (!file) return;
  follow(state, descriptor, version.id, {.file = *file});
  (*file)->start(version, file_clock_ns());
  prefetcher->wake();
}

bool is_mapped(const Registry& state, const std::shared_ptr<AdvisedFile>& file) {
  return file != nullptr &&
         std::ranges::find(state.mappings, file, &ShownFile::file) != state.mappings.end();
}

/// With Inside. Nothing happens if it is not listed.
void close_listed(int descriptor) {
  Registry& state = *registry.load();
  Followed followed;
  {
    const std::lock_guard lock(state.mutex);
    followed = unlist(state, descriptor);
    if (followed.file != nullptr && state.prefetcher != nullptr) {
      state.prefetcher->release(followed.file);
    }
    if (is_mapped(state, followed.advised)) return;  // It goes on.
  }
  write_record(followed);
}

/// With the registry locked. What is read of the file will be read from the page cache, by ways
/// that are not seen: what is declared of it is brought there. Null: nothing is declared, or
/// nothing can be done.
std::shared_ptr<AdvisedFile> move_to_page_cache(Registry& state, ManagedFile& managed,
                                                int descriptor) {
  const std::lock_guard lock(managed.mutex);
  Followed& followed = managed.followed;
  if (followed.advised != nullptr) return followed.advised;
  const auto version = version_of(descriptor);
  if (followed.file == nullptr || followed.file->intent().willneed.empty() || !version ||
      !(version->id == managed.id)) {
    return nullptr;
  }
  auto advised =
      advise(state, descriptor, *version, followed.file->path(), followed.file->intent());
  if (advised == nullptr) return nullptr;
  if (state.prefetcher != nullptr) state.prefetcher->release(followed.file);
  if (followed.file->figures().requests > 0) write_record(followed);
  followed = {.advised = advised};
  return advised;
}

/// Calls `act`, with the registry locked, for what is listed of `descriptor` by a program whose
/// reads are not written down. errno stays.
template <typename Act>
void with_listed(int descriptor, Act&& act) {
  if (inside || recording || !is_own_process(*registry.load())) return;
  const int before = errno;
  const Inside guard;
  Registry& state = *registry.load();
  const std::lock_guard lock(state.mutex);
  if (ManagedFile* managed = listed(descriptor)) act(state, *managed);
  errno = before;
}

void record(int descriptor, const FileVersion& version, const char* path) {
  close_listed(descriptor);  // If it was closed behind our back.
  Registry& state = *registry.load();
  const std::lock_guard lock(state.mutex);
  follow(state, descriptor, version.id,
         {.trace = std::make_shared<ReadTrace>(), .path = path, .size = version.size});
}

/// Somebody in this process may write to it from now on.
void stop_serving(FileId id) {
  Registry& state = *registry.load();
  const std::lock_guard lock(state.mutex);
  for (ManagedFile* managed : state.files) {
    const std::lock_guard file_lock(managed->mutex);
    if (managed->followed.file != nullptr && managed->id == id) {
      managed->followed.file->stop("it was opened for writing");
    }
  }
}

/// What a listed descriptor is served from; null if this call must not be served.
struct Access {
  ManagedFile* managed = nullptr;
  std::shared_ptr<PrefetchedFile> file;  ///< Null: advised is there, which serves nothing.
  std::shared_ptr<AdvisedFile> advised;
  std::unique_lock<std::mutex> lock;
  FileVersion version;
};

std::optional<Access> access_to(int descriptor) {
  ManagedFile* managed = listed(descriptor);
  Registry& state = *registry.load();
  if (managed == nullptr || managed->is_over || !is_own_process(state)) return std::nullopt;
  Access access{managed, nullptr, nullptr, std::unique_lock(managed->mutex), {}};
  if (listed(descriptor) != managed) return std::nullopt;
  access.file = managed->followed.file;
  access.advised = managed->followed.advised;
  if (access.file == nullptr && access.advised == nullptr) return std::nullopt;
  const auto version = version_of(descriptor);
  if (!version) return std::nullopt;
  access.version = *version;
  return access;
}

size_t serve(Access& access, void* buffer, size_t count, off_t offset) {
  access.lock.unlock();
  const auto served = access.file->serve({static_cast<std::byte*>(buffer), count}, offset,
                                         access.version, file_clock_ns());
  if (served.room) access.file->wake();
  if (served.over) access.managed->is_over = true;
  return static_cast<size_t>(served.bytes);
}

void before_fork() { registry.load()->mutex.lock(); }

void after_fork_in_parent() {
  Registry& state = *registry.load();
  for (ManagedFile* managed : state.files) managed->position_is_shared = true;
  state.mutex.unlock();
}

void after_fork_in_child() {
  Registry& state = *registry.load();
  for (unsigned fd = 0; fd < state.listed_end; ++fd) detail::listed_files[fd].store(nullptr);
  close_internal();
  inside = false;
  registry.store(new Registry);
}

[[gnu::constructor(102)]] void load() {
  const Inside guard;
  const char* record = std::getenv("FOREBAY_RECORD_READS");
  recording = record != nullptr && std::strcmp(record, "1") == 0;
  if (!recording) declared = DeclaredReads::load();
  if (declared == nullptr && !recording) return;
  registry.store(new Registry);
  ::pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
}

/// Files that the program leaves open have their records too.
[[gnu::destructor]] void unload() {
  Registry* state = registry.load();
  if (state == nullptr || !is_own_process(*state)) return;
  const Inside guard;
  const std::lock_guard lock(state->mutex);
  for (ManagedFile* managed : state->files) {
    const std::lock_guard file_lock(managed->mutex);
    write_record(managed->followed);
  }
  for (const ShownFile& shown : state->mappings) {
    if (std::ranges::none_of(state->files, [&](ManagedFile* managed) {
          return managed->followed.advised == shown.file;
        })) {
      write_record({.advised = shown.file});
    }
  }
}

}  // namespace

void opened(int descriptor, int directory, const char* path, int flags, Reader reader) {
  if (registry.load() == nullptr || inside) return;
  if (static_cast<unsigned>(descriptor) >= most_descriptors) return;
  const int before = errno;
  const Inside guard;
  struct stat status{};
  if (is_own_process(*registry.load()) && ::fstat(descriptor, &status) == 0 &&
      S_ISREG(status.st_mode) && (flags & O_PATH) == 0) {
    const FileVersion version = version_in(status);
    const OpenedName name(descriptor, directory, path);
    if (recording) {
      if ((flags & O_ACCMODE) == O_RDONLY) record(descriptor, version, name.named());
      errno = before;
      return;
    }
    const auto sections = declared->sections_for(name);
    if ((flags & O_ACCMODE) != O_RDONLY) {
      if (!sections.empty()) stop_serving(version.id);
    } else if (!sections.empty() && (flags & (O_DIRECT | O_SYNC | O_DSYNC)) == 0) {
      DeclaredReads::tell(sections);
      close_listed(descriptor);  // If it was closed behind our back.
      manage(descriptor, version, path, sections, reader);
    }
  }
  errno = before;
}

void is_stream(int descriptor) {
  with_listed(descriptor, [&](Registry& state, ManagedFile& managed) {
    const auto file = move_to_page_cache(state, managed, descriptor);
    if (file != nullptr) file->watch(std::make_shared<PositionProgress>(descriptor, managed.id));
  });
}

void mapped(int descriptor, void* address, size_t length, off_t offset) {
  with_listed(descriptor, [&](Registry& state, ManagedFile& managed) {
    if (state.mappings.size() >= most_mappings) return;
    const auto file = move_to_page_cache(state, managed, descriptor);
    if (file == nullptr) return;
    const auto begin = reinterpret_cast<std::uintptr_t>(address);
    auto progress = protect(
        std::make_unique<MappedProgress>(Mapping{begin, static_cast<Bytes>(length), offset}));
    file->watch(progress);
    state.mappings.push_back({begin, begin + length, file, std::move(progress)});
    has_mappings = true;
  });
}

void unmapped(void* address, size_t length) {
  if (!has_mappings.load(std::memory_order_relaxed) || inside) return;
  const int before = errno;
  const Inside guard;
  Registry& state = *registry.load();
  // An allocator may come here around a fork, when the lock is held by its own thread. What is
  // looked at in vain then does no harm: the kernel is asked about pages and given advice, no more.
  const std::unique_lock lock(state.mutex, std::try_to_lock);
  const auto begin = reinterpret_cast<std::uintptr_t>(address);
  if (lock.owns_lock() && is_own_process(state)) {
    for (std::size_t i = state.mappings.size(); i-- > 0;) {
      if (begin >= state.mappings[i].end || begin + length <= state.mappings[i].begin) continue;
      const ShownFile shown = state.mappings[i];
      state.mappings.erase(state.mappings.begin() + static_cast<std::ptrdiff_t>(i));
      shown.file->forget(shown.progress);
      const bool is_open = std::ranges::any_of(state.files, [&](ManagedFile* managed) {
        const std::lock_guard file_lock(managed->mutex);
        return managed->followed.advised == shown.file;
      });
      if (!is_open && !is_mapped(state, shown.file)) write_record({.advised = shown.file});
    }
    has_mappings = !state.mappings.empty();
  }
  errno = before;
}

off_t position_for_trace(int descriptor) {
  return recording ? ::lseek(descriptor, 0, SEEK_CUR) : -1;
}

void closing(int descriptor) {
  if (listed(descriptor) == nullptr || !is_own_process(*registry.load())) return;
  const int before = errno;
  if (inside) {
    // A signal handler closes what the program below it may be working on: no lock can be taken.
    detail::listed_files[static_cast<unsigned>(descriptor)].store(nullptr);
  } else {
    const Inside guard;
    close_listed(descriptor);
  }
  errno = before;
}

void closing_range(unsigned first, unsigned last) {
  const Registry* state = registry.load();
  if (state == nullptr) return;
  const unsigned end = std::min(state->listed_end, most_descriptors);
  for (unsigned fd = first; fd < end && fd <= last; ++fd) {
    if (listed(static_cast<int>(fd)) != nullptr) closing(static_cast<int>(fd));
  }
}

void duplicated(int descriptor, int copy) {
  Registry& state = *registry.load();
  if (inside || static_cast<unsigned>(copy) >= most_descriptors || !is_own_process(state)) return;
  const Inside guard;
  const std::lock_guard lock(state.mutex);
  ManagedFile* managed = listed(descriptor);
  if (managed != nullptr && listed(copy) == nullptr) list(state, copy, managed);
}

bool give_way(int descriptor) {
  Registry& state = *registry.load();
  // A child that shares our memory has descriptors of its own.
  if (!is_own_process(state)) return true;
  if (inside) return false;
  const int before = errno;
  const Inside guard;
  const std::lock_guard lock(state.mutex);
  if (is_internal(descriptor) && state.prefetcher != nullptr) {
    for (const int number : state.queue_descriptors) set_internal(number, false);
    state.prefetcher->end("the program took the number of a descriptor");
    state.gave_way.push_back(std::move(state.prefetcher));
  }
  if (is_internal(descriptor) && state.adviser != nullptr) {
    state.mappings.clear();
    state.adviser->end();
    state.ended.push_back(std::move(state.adviser));
  }
  errno = before;
  return true;
}

size_t serve_at(int descriptor, void* buffer, size_t count, off_t offset) {
  if (inside) return 0;
  const Inside guard;
  auto access = access_to(descriptor);
  if (!access) return 0;
  const off_t rest = access->version.size - offset;
  if (rest <= 0) return 0;
  const size_t most = std::min(count, static_cast<size_t>(rest));
  if (access->advised != nullptr) {
    access->advised->note({offset, static_cast<Bytes>(most)});
    return 0;
  }
  return can_be_written(buffer, most) ? serve(*access, buffer, most, offset) : 0;
}

PositionedServe serve_next(int descriptor, void* buffer, size_t count) {
  if (inside) return {};
  const Inside guard;
  auto access = access_to(descriptor);
  if (!access || access->managed->position_is_shared) return {};
  const off_t size = access->version.size;
  const off_t position = ::lseek(descriptor, 0, SEEK_CUR);
  if (position < 0 || position >= size) return {};
  const size_t claimed = std::min(count, static_cast<size_t>(size - position));
  if (access->advised != nullptr) {
    access->advised->note({position, static_cast<Bytes>(claimed)});
    return {};
  }
  if (!can_be_written(buffer, claimed)) return {};
  // One step forward, as read() would go: whoever moves the position at the same time comes before
  // or after it.
  const off_t after = ::lseek(descriptor, static_cast<off_t>(claimed), SEEK_CUR);
  const off_t offset = after - static_cast<off_t>(claimed);
  if (after < 0 || after > size) {
    if (after >= 0) ::lseek(descriptor, -static_cast<off_t>(claimed), SEEK_CUR);
    return {};
  }
  return {serve(*access, buffer, claimed, offset), claimed, offset};
}

void was_read(int descriptor, off_t offset, ssize_t moved) {
  if (!recording || moved <= 0 || inside) return;
  ManagedFile* managed = listed(descriptor);
  if (managed == nullptr) return;
  if (!is_own_process(*registry.load())) return;
  const int before = errno;
  const Inside guard;
  {
    const std::lock_guard lock(managed->mutex);
    const off_t from = offset >= 0 ? offset : ::lseek(descriptor, 0, SEEK_CUR) - moved;
    if (managed->followed.trace != nullptr && from >= 0)
      managed->followed.trace->add({from, moved});
  }
  errno = before;
}

}  // namespace forebay::posix
