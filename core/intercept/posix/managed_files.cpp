#include "core/intercept/posix/managed_files.hpp"

#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <mutex>
#include <new>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/engine/prefetch/prefetcher.hpp"
#include "core/intercept/posix/prefetch_record.hpp"
#include "core/intercept/posix/program_memory.hpp"
#include "core/model/read_intent.hpp"
#include "core/storage/descriptor.hpp"
#include "core/storage/fetch_source.hpp"
#include "core/storage/file_version.hpp"
#include "core/storage/read_queue.hpp"

namespace forebay::posix {

namespace detail {
std::array<std::atomic<ManagedFile*>, most_descriptors> listed_files{};
}  // namespace detail

/// An open file description of the program that is read ahead; all duplicates of a descriptor share
/// it. Used again for another file, but never freed: a thread that found it in the table may still
/// come when another has closed the descriptor.
class ManagedFile {
 public:
  std::mutex mutex;                      ///< Held while the position is moved.
  std::shared_ptr<PrefetchedFile> file;  ///< Guarded by mutex; null: in the pool.
  FileId id;                             ///< Guarded by the registry's mutex, as is what follows.
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
};

/// Numbers of descriptors that are ours.
std::array<std::atomic<bool>, most_descriptors> internal_numbers{};
std::atomic<unsigned> internal_end{0};  ///< None from here on was ever ours.

void set_internal(int descriptor, bool is_ours) {
  const auto index = static_cast<unsigned>(descriptor);
  if (index >= most_descriptors) return;
  internal_numbers[index].store(is_ours);
  unsigned end = internal_end.load();
  while (index >= end && !internal_end.compare_exchange_weak(end, index + 1)) {
  }
}

/// A source whose descriptor the program cannot close.
class ProtectedSource final : public FetchSource {
 public:
  explicit ProtectedSource(std::unique_ptr<FetchSource> source) : source_(std::move(source)) {
    set_internal(source_->descriptor(), true);
  }
  ~ProtectedSource() override { set_internal(source_->descriptor(), false); }
  ProtectedSource(const ProtectedSource&) = delete;
  ProtectedSource& operator=(const ProtectedSource&) = delete;

  Result<Bytes> read(std::span<std::byte> into, Bytes offset) override {
    return source_->read(into, offset);
  }
  std::optional<FileVersion> version() override { return source_->version(); }
  Bytes resident(Extent extent) override { return source_->resident(extent); }
  int descriptor() const override { return source_->descriptor(); }

 private:
  const std::unique_ptr<FetchSource> source_;
};

/// All that is known of a process. A forked child begins with a new one and leaves its parent's
/// behind, whose locks may be held by threads that it does not have.
struct Registry {
  std::mutex mutex;
  pid_t process = ::getpid();
  std::unique_ptr<Prefetcher> prefetcher;  ///< Guarded by mutex, as is what follows.
  bool prefetcher_failed = false;
  std::vector<int> queue_descriptors;                 ///< Of the prefetcher.
  std::vector<std::unique_ptr<Prefetcher>> gave_way;  ///< Readers may still call wake() of them.
  std::vector<ManagedFile*> files;                    ///< All there ever were.
  std::vector<ManagedFile*> pool;                     ///< Of them, those without a file.
  unsigned listed_end = 0;  ///< No descriptor from here on was ever listed.
};

/// Never destroyed: programs read in their exit handlers too.
std::atomic<Registry*> registry{nullptr};

/// Read when the library is loaded; never destroyed.
struct Intent {
  std::string path;
  std::vector<ReadSection> sections;
};
const Intent* intent = nullptr;

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

/// The sections for the file behind `descriptor`, which was opened as `path`: by that name made
/// absolute, or by the one without symbolic links. No heap memory before there is one.
std::vector<const ReadSection*> sections_for(int descriptor, int directory, const char* path) {
  std::array<char, std::size_t{2} * PATH_MAX> named{};
  std::array<char, PATH_MAX> real_name{};
  std::array<char, 32> link{};
  const auto read_link = [&](int of, std::span<char> into) {
    std::snprintf(link.data(), link.size(), "/proc/self/fd/%d", of);
    const ssize_t length = ::readlink(link.data(), into.data(), into.size() - 1);
    into[static_cast<std::size_t>(std::max<ssize_t>(length, 0))] = '\0';
  };
  if (path[0] != '/') {
    if (directory == AT_FDCWD) {
      if (::syscall(SYS_getcwd, named.data(), PATH_MAX) < 0) named[0] = '\0';
    } else {
      read_link(directory, std::span(named).first(PATH_MAX));
    }
    const std::size_t length = std::strlen(named.data());
    std::snprintf(named.data() + length, named.size() - length, "/%s", path);
  } else {
    std::snprintf(named.data(), named.size(), "%s", path);
  }
  read_link(descriptor, real_name);
  std::vector<const ReadSection*> result;
  for (const ReadSection& section : intent->sections) {
    if (section_matches(section.pattern, named.data()) ||
        section_matches(section.pattern, real_name.data())) {
      result.push_back(&section);
    }
  }
  return result;
}

void tell(const std::vector<const ReadSection*>& sections) {
  static std::atomic_flag told = ATOMIC_FLAG_INIT;
  const bool nothing =
      std::ranges::all_of(sections, [](const auto* section) { return section->problems.empty(); });
  if (nothing || told.test_and_set()) return;
  for (const ReadSection* section : sections) {
    for (const HintProblem& problem : section->problems) {
      std::fprintf(stderr, "forebay: %s\n", to_string(problem).c_str());
    }
  }
}

void list(Registry& state, int descriptor, ManagedFile* managed) {
  state.listed_end = std::max(state.listed_end, static_cast<unsigned>(descriptor) + 1);
  ++managed->descriptors;
  detail::listed_files[static_cast<unsigned>(descriptor)].store(managed, std::memory_order_release);
}

/// With the registry locked. The file of a last descriptor is handed back, for its record.
std::shared_ptr<PrefetchedFile> unlist(Registry& state, int descriptor) {
  ManagedFile* managed = detail::listed_files[static_cast<unsigned>(descriptor)].exchange(nullptr);
  if (managed == nullptr || --managed->descriptors > 0) return nullptr;
  std::shared_ptr<PrefetchedFile> file;
  {
    const std::lock_guard lock(managed->mutex);
    file = std::exchange(managed->file, nullptr);
  }
  state.pool.push_back(managed);
  return file;
}

void manage(int descriptor, const FileVersion& version, const char* path,
            const std::vector<const ReadSection*>& sections) {
  Registry& state = *registry.load();
  const std::lock_guard lock(state.mutex);
  Prefetcher* prefetcher = prefetcher_of(state);
  if (prefetcher == nullptr || descriptors_run_short()) return;
  auto source = open_fetch_source(descriptor, path);
  if (!source) return;
  ReadIntent wishes = combined(sections);
  // No more memory than the file fills.
  const Bytes unit = std::min(wishes.block.value_or(Prefetcher::usual_block), GiB);
  const Bytes most = std::max(round_up(version.size, unit) + unit, 4 * unit);
  wishes.budget = std::min(wishes.budget.value_or(Prefetcher::usual_budget), most);
  auto file = prefetcher->add(path, std::make_unique<ProtectedSource>(*std::move(source)), wishes);
  if (!file) return;
  if (state.pool.empty()) {
    state.files.push_back(new ManagedFile);
    state.pool.push_back(state.files.back());
  }
  ManagedFile* managed = state.pool.back();
  state.pool.pop_back();
  managed->id = version.id;
  managed->position_is_shared = false;
  managed->is_over = false;
  {
    const std::lock_guard file_lock(managed->mutex);
    managed->file = *file;
  }
  list(state, descriptor, managed);
  (*file)->start(version, file_clock_ns());
  prefetcher->wake();
}

/// With Inside. Nothing happens if it is not listed.
void close_listed(int descriptor) {
  Registry& state = *registry.load();
  std::shared_ptr<PrefetchedFile> file;
  {
    const std::lock_guard lock(state.mutex);
    file = unlist(state, descriptor);
    if (file != nullptr && state.prefetcher != nullptr) state.prefetcher->release(file);
  }
  if (file != nullptr) write_prefetch_record(*file);
}

/// Somebody in this process may write to it from now on.
void stop_serving(FileId id) {
  Registry& state = *registry.load();
  const std::lock_guard lock(state.mutex);
  for (ManagedFile* managed : state.files) {
    const std::lock_guard file_lock(managed->mutex);
    if (managed->file != nullptr && managed->id == id) {
      managed->file->stop("it was opened for writing");
    }
  }
}

/// What a listed descriptor is served from; null if this call must not be served.
struct Access {
  ManagedFile* managed = nullptr;
  std::shared_ptr<PrefetchedFile> file;
  std::unique_lock<std::mutex> lock;
  FileVersion version;
};

std::optional<Access> access_to(int descriptor) {
  ManagedFile* managed = listed(descriptor);
  Registry& state = *registry.load();
  if (managed == nullptr || managed->is_over || !is_own_process(state)) return std::nullopt;
  Access access{managed, nullptr, std::unique_lock(managed->mutex), {}};
  if (listed(descriptor) != managed || managed->file == nullptr) return std::nullopt;
  access.file = managed->file;
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
  for (unsigned fd = 0; fd < internal_end.load(); ++fd) {
    if (internal_numbers[fd].exchange(false)) ::close(static_cast<int>(fd));
  }
  inside = false;
  registry.store(new Registry);
}

/// With a message for a person where it does not help; the program runs on without it.
void read_intent() {
  const char* path = std::getenv("FOREBAY_INTENT");
  const char* mode = std::getenv("FOREBAY_MODE");
  if (path == nullptr || path[0] == '\0') return;
  if (mode != nullptr && (std::strcmp(mode, "off") == 0 || std::strcmp(mode, "observe") == 0)) {
    return;
  }
  std::ifstream file(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  auto sections = read_sections(text, path);
  if (!file.is_open() || !sections) {
    const std::string why =
        sections ? std::string(path) + " cannot be read" : to_string(sections.error());
    std::fprintf(stderr, "forebay: nothing is read ahead: %s\n", why.c_str());
    return;
  }
  if (!sections->empty()) intent = new Intent{path, *std::move(sections)};
}

[[gnu::constructor(102)]] void load() {
  const Inside guard;
  read_intent();
  if (intent == nullptr) return;
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
    if (managed->file != nullptr) write_prefetch_record(*managed->file);
  }
}

}  // namespace

void opened(int descriptor, int directory, const char* path, int flags) {
  if (intent == nullptr || inside || static_cast<unsigned>(descriptor) >= most_descriptors) return;
  const int before = errno;
  const Inside guard;
  struct stat status{};
  if (is_own_process(*registry.load()) && ::fstat(descriptor, &status) == 0 &&
      S_ISREG(status.st_mode) && (flags & O_PATH) == 0) {
    const FileVersion version = version_in(status);
    const auto sections = sections_for(descriptor, directory, path);
    if ((flags & O_ACCMODE) != O_RDONLY) {
      if (!sections.empty()) stop_serving(version.id);
    } else if (!sections.empty() && (flags & (O_DIRECT | O_SYNC | O_DSYNC)) == 0) {
      tell(sections);
      close_listed(descriptor);  // If it was closed behind our back.
      manage(descriptor, version, path, sections);
    }
  }
  errno = before;
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

bool is_internal(int descriptor) {
  const auto index = static_cast<unsigned>(descriptor);
  return index < most_descriptors && internal_numbers[index].load(std::memory_order_relaxed);
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
  errno = before;
  return true;
}

unsigned next_internal(unsigned first, unsigned last) {
  if (registry.load() == nullptr) return last + 1;
  const unsigned end = internal_end.load();
  while (first <= last && first < end && !is_internal(static_cast<int>(first))) ++first;
  return first < end ? std::min(first, last + 1) : last + 1;
}

size_t serve_at(int descriptor, void* buffer, size_t count, off_t offset) {
  if (inside) return 0;
  const Inside guard;
  auto access = access_to(descriptor);
  if (!access) return 0;
  const off_t rest = access->version.size - offset;
  if (rest <= 0) return 0;
  const size_t most = std::min(count, static_cast<size_t>(rest));
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

}  // namespace forebay::posix
