#include "core/intercept/posix/read_ahead.hpp"

#include <algorithm>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "core/engine/prefetch/node_readers.hpp"
#include "core/engine/prefetch/page_cache_fetch.hpp"
#include "core/engine/prefetch/prefetcher.hpp"
#include "core/engine/prefetch/steady_time.hpp"
#include "core/intercept/posix/internal_descriptors.hpp"
#include "core/model/read_intent.hpp"
#include "core/plan/block_advice.hpp"
#include "core/plan/extent_advice.hpp"
#include "core/plan/fetch_plan.hpp"
#include "core/plan/fetch_window.hpp"
#include "core/storage/fetch_source.hpp"
#include "core/storage/read_progress.hpp"

namespace forebay::posix {
namespace {

/// With the registry locked. Nothing reads it any more.
void release(Registry& state, const Followed& followed) {
  if (followed.file != nullptr && state.prefetcher != nullptr) {
    state.prefetcher->release(followed.file);
  }
}

/// What the record of the next way that a file is read ahead in has of those before.
struct WayBefore {
  KernelReads by_kernel;
  std::int64_t openings;
};

/// Of a file that is read ahead in another way from now on: leaves the record of the way until now,
/// or, if that was of no use, returns what goes into the next one.
WayBefore end_way(ManagedFile& managed, Followed followed) {
  followed.by_kernel += managed.by_kernel.take();
  if (followed.file == nullptr) return {followed.by_kernel, followed.openings};
  const auto figures = followed.file->figures();
  if (figures.requests > 0 || figures.reads_served > 0) {
    write_record(followed);
    return {{}, 0};
  }
  followed.by_kernel.reads_unfollowed += figures.reads;
  followed.by_kernel.bytes_unfollowed += figures.bytes_asked;
  return {followed.by_kernel, followed.openings};
}

void end(Registry& state, const Followed& followed) {
  release(state, followed);
  write_record(followed);
}

tl::unexpected<Error> no_thread(const Registry& state) {
  const char* why =
      state.ends_with_last_thread ? "the program's first thread ended" : "no thread is to be had";
  return tl::unexpected(Error{ErrorKind::unsupported, 0, why});
}

/// No more memory than the file fills.
Bytes budget_for(const ReadIntent& wishes, const FileVersion& version) {
  const Bytes unit = std::min(wishes.block.value_or(Prefetcher::usual_block), GiB);
  const Bytes most = std::max(round_up(version.size, unit) + unit, 4 * unit);
  return std::min(wishes.budget.value_or(Prefetcher::usual_budget), most);
}

ReadIntent fitted(ReadIntent wishes, const FileVersion& version) {
  wishes.budget = budget_for(wishes, version);
  return wishes;
}

/// With the registry locked. Error: nothing can be told of this file.
Result<std::shared_ptr<AdvisedFile>> advise(Registry& state, int descriptor,
                                            const FileVersion& version, const std::string& path,
                                            const ReadIntent& wishes) {
  // The published method is measured as it was published.
  const bool is_published = wishes.policy == ReadPolicy::mercury;
  auto source = open_protected_source(
      descriptor, path, is_published ? Through::page_cache : Through::widened_page_cache);
  if (!source) return tl::unexpected(source.error());
  Adviser* adviser = adviser_of(state);
  if (adviser == nullptr) return no_thread(state);
  if (is_published) {
    auto advice =
        std::make_unique<BlockAdvice>(wishes.willneed, version.size, BlockAdvice::shape_of(wishes));
    return adviser->add(path, *std::move(source), std::move(advice));
  }
  const Bytes budget = budget_for(wishes, version);
  auto advice = std::make_unique<ExtentAdvice>(wishes.willneed, version.size, budget,
                                               wishes.gap.value_or(GapChoice{}).bytes);
  auto readers = NodeReaders::join(version, advice->plan().extents(), budget);
  auto fetch =
      std::make_unique<PageCacheFetch>(std::move(readers), version.size, advice->plan().extents());
  return adviser->add(path, *std::move(source), std::move(advice), std::move(fetch));
}

/// Whether the kernel is to serve the reads, from its page cache.
bool is_for_page_cache(const ReadIntent& wishes, Reader reader) {
  if (wishes.policy == ReadPolicy::mercury) return true;
  return !wishes.willneed.empty() &&
         (wishes.policy == ReadPolicy::page_cache || reader == Reader::stream);
}

bool is_advised(const Followed& followed) { return followed.advised != nullptr; }

/// What was kept of a file that is read through the page cache goes on, if it is still the same.
bool take_up_advised(Registry& state, int descriptor, const FileVersion& version, Reader reader) {
  auto parked = state.parked.take(version.id, is_advised);
  if (!parked) return false;
  if (!(parked->version == version)) {
    end(state, *parked);
    return false;
  }
  if (reader == Reader::stream) {
    parked->advised->watch(std::make_shared<PositionProgress>(descriptor, version.id));
  }
  ++parked->openings;
  follow(state, descriptor, *std::move(parked));
  return true;
}

}  // namespace

void end_parked(Registry& state) {
  for (const Followed& followed : state.parked.take_all()) end(state, followed);
}

namespace {

/// Fetched into memory of the process. Error: nothing can be.
Result<std::shared_ptr<ServedFile>> fetch(Registry& state, int descriptor,
                                          const FileVersion& version, const std::string& path,
                                          ReadIntent wishes) {
  Prefetcher* prefetcher = prefetcher_of(state);
  if (prefetcher == nullptr) return no_thread(state);
  wishes = fitted(std::move(wishes), version);
  const auto add = [&]() -> Result<std::shared_ptr<ServedFile>> {
    auto source = open_protected_source(descriptor, path);
    if (!source) return tl::unexpected(source.error());
    return prefetcher->add(path, *std::move(source), wishes);
  };
  auto file = add();
  if (!file) {  // Perhaps for want of memory.
    end_parked(state);
    file = add();
  }
  return file;
}

/// Fetched together with other processes, by a program that has read so much of it before. Null:
/// that cannot be.
std::shared_ptr<ServedFile> fetch_together(Registry& state, int descriptor,
                                           const FileVersion& version, const std::string& path,
                                           const ReadIntent& wishes,
                                           const SharedWindow::Before& before) {
  Prefetcher* prefetcher = prefetcher_of(state);
  auto source = open_protected_source(descriptor, path);
  // What others have fetched must not be older than the program's opening; and a page cache could
  // hold what no change of times tells of.
  if (prefetcher == nullptr || !source || !(*source)->is_direct()) return nullptr;
  if (const auto now = served_version_of(descriptor); !now || !(*now == version)) return nullptr;
  auto file = prefetcher->add_shared(path, *std::move(source), fitted(wishes, version), version,
                                     before, file_clock_ns());
  return file ? *file : nullptr;
}

void start(const Registry& state, ServedFile& file, const FileVersion& version) {
  file.start(version, file_clock_ns());
  state.prefetcher->wake();
}

/// A child begins with this read by offset of what its parent opened: many make one and end.
constexpr int fewest_inherited = 3;

/// Smaller files are not worth the shared memory.
constexpr Bytes smallest_shared = MiB;

/// With the registry locked. What tells other processes that this one reads the file, by one
/// opening or several, where the choice is ours. Null: they change nothing.
std::shared_ptr<NodeReaders> announced(Registry& state, const FileVersion& version,
                                       const ReadIntent& wishes) {
  const bool is_free = wishes.policy.value_or(ReadPolicy::automatic) == ReadPolicy::automatic;
  if (!is_free || wishes.willneed.empty() || version.size < smallest_shared) return nullptr;
  std::erase_if(state.announced, [](const auto& known) { return known.presence.expired(); });
  const auto known = std::ranges::find(state.announced, version, &AnnouncedFile::version);
  std::shared_ptr<NodeReaders> presence;
  if (known != state.announced.end()) presence = known->presence.lock();
  if (presence != nullptr) return presence;
  presence = NodeReaders::join(version, {}, budget_for(wishes, version));
  if (presence != nullptr) state.announced.push_back({version, presence});
  return presence;
}

/// Whether who reads what is declared of a file of `size` bytes finds it in the page cache, if it
/// was brought there.
bool comes_from_page_cache(int descriptor, const std::string& path, const ReadIntent& wishes,
                           Bytes size) {
  const Extent first = first_declared(wishes.willneed, size);
  if (first.empty()) return false;
  const auto source = open_protected_source(descriptor, path, Through::page_cache);
  return source && !PageCacheFetch::is_in_vain(**source, first);
}

/// Nothing is fetched of what `descriptor` was opened for; but its reads are counted.
void follow_left_alone(Registry& state, int descriptor, const FileVersion& version,
                       const char* path, std::string why) {
  follow(state, descriptor, {.path = path, .version = version, .left_alone = std::move(why)})
      .is_over = true;
}

constexpr const char* few_descriptors =
    "the process had taken half of the descriptors that it may have";

/// Who reads by MPI-IO opens a file before it is known what each process reads of it.
bool is_opened_early(Reader reader) { return fetches_later && reader == Reader::calls; }

bool is_brought_to_page_cache(const ReadIntent& wishes, Reader reader) {
  return !is_opened_early(reader) && is_for_page_cache(wishes, reader);
}

/// With the registry locked. Its first read will decide(). `unread`: what is told if there is none.
void follow_undecided(Registry& state, int descriptor, const FileVersion& version, const char* path,
                      std::shared_ptr<const ReadIntent> wishes, const char* unread = "") {
  follow(state, descriptor,
         {.declared = std::move(wishes), .path = path, .version = version, .left_alone = unread});
}

/// What was kept of a file of these `wishes` may go on with this opening. It holds the file open,
/// so it is of the file system that was asked what it tells. False: nothing was, or not for these.
bool take_up(Registry& state, int descriptor, const FileVersion& version, const char* path,
             const std::shared_ptr<const ReadIntent>& wishes, Reader reader) {
  const RegistryLock lock(state);
  if (!lock) return true;  // Nothing is followed any more.
  close_unlocked();
  if (take_up_advised(state, descriptor, version, reader)) return true;
  if (is_brought_to_page_cache(*wishes, reader) || !state.parked.holds(version.id)) return false;
  follow_undecided(state, descriptor, version, path, wishes);
  return true;
}

}  // namespace

void manage(int descriptor, const FileVersion& version, const char* path,
            const DeclaredReads::Sections& sections, Reader reader) {
  Registry& state = *registry.load();
  const auto wishes = DeclaredReads::together(sections);
  if (take_up(state, descriptor, version, path, wishes, reader)) return;
  // Without the lock: a file server may never answer.
  const TimesTell told = times_tell(descriptor);
  if (told == TimesTell::nothing) {
    return leave_alone(path, "its times do not tell of changes: it is in memory, or the like");
  }
  const RegistryLock lock(state);
  if (!lock) return;
  if (told == TimesTell::once_written) state.late_devices.insert(version.id.device);
  const auto without = [&](std::string why) {
    follow_left_alone(state, descriptor, version, path, std::move(why));
  };
  if (descriptors_run_short()) {
    end_parked(state);
    return without(few_descriptors);
  }
  const auto by_page_cache = [&] {
    auto advised = advise(state, descriptor, version, path, *wishes);
    if (!advised) return without(to_string(advised.error()));
    if (reader == Reader::stream) {
      (*advised)->watch(std::make_shared<PositionProgress>(descriptor, version.id));
    }
    follow(state, descriptor, {.advised = *std::move(advised), .version = version});
  };
  if (is_brought_to_page_cache(*wishes, reader)) return by_page_cache();
  // Streams of C++ read by calls, and may show a pattern. What C streams read is not seen.
  if (reader == Reader::stream) {
    return follow_undecided(state, descriptor, version, path, wishes,
                            "a stream read it, whose order cannot be found out");
  }
  if (is_opened_early(reader) || state.parked.is_reopened(version.id)) {
    return follow_undecided(state, descriptor, version, path, wishes);
  }
  auto presence = announced(state, version, *wishes);
  const std::int64_t began_ns = steady_ns();
  if (presence != nullptr && presence->has_company()) {
    if (auto file = fetch_together(state, descriptor, version, path, *wishes, {began_ns})) {
      follow(state, descriptor,
             {.file = std::move(file),
              .company = std::move(presence),
              .version = version,
              .began_ns = began_ns});
      return;
    }
    if (comes_from_page_cache(descriptor, path, *wishes, version.size)) return by_page_cache();
    presence.reset();
  }
  const auto file = fetch(state, descriptor, version, path, *wishes);
  if (!file) return without(to_string(file.error()));
  follow(
      state, descriptor,
      {.file = *file, .presence = std::move(presence), .version = version, .began_ns = began_ns});
  start(state, **file, version);
}

void decide(int descriptor, const FileVersion& version, Bytes offset) {
  Registry& state = *registry.load();
  const RegistryLock lock(state);
  ManagedFile* managed = lock ? listed(descriptor) : nullptr;
  if (managed == nullptr) return;
  const std::lock_guard file_lock(managed->mutex);
  Followed& followed = managed->followed;
  if (followed.declared == nullptr || !(version.id == managed->id)) return;
  const auto foresees = [offset](const Followed& parked) {
    return parked.file != nullptr && parked.file->foresees(offset);
  };
  if (auto parked = state.parked.take(version.id, foresees)) {
    parked->openings += followed.openings;
    followed = *std::move(parked);
    managed->is_undecided = false;
    return;
  }
  const std::vector<Extent>& willneed = followed.declared->willneed;
  std::vector<Extent> rest = declared_from(willneed, offset, version.size);
  if (rest.empty() != willneed.empty() || !state.parked.may_begin(version.id)) {
    // The index of the file, or what nobody declared, or not for now.
    managed->is_over = ++managed->reads_undecided > most_strays;
    return;
  }
  const bool is_inherited = managed->position_is_shared;
  if (is_inherited && ++managed->reads_inherited < fewest_inherited) return;
  managed->is_undecided = false;
  const auto without = [&](std::string why) {
    managed->is_over = true;
    followed.left_alone = std::move(why);
  };
  if (descriptors_run_short()) {
    end_parked(state);
    return without(few_descriptors);
  }
  ReadIntent wishes = *followed.declared;
  wishes.willneed = std::move(rest);
  // Others may read it, too: of what is inherited the parent, and other children.
  auto presence = announced(state, version, wishes);
  const bool has_company = presence != nullptr && presence->has_company();
  // Who begins where the plan does reads by the same plan as who keeps the file open.
  const bool is_at_beginning =
      !is_inherited && first_declared(willneed, version.size).offset == offset;
  const std::int64_t began_ns = is_at_beginning ? steady_ns() : 0;
  if (has_company && is_at_beginning) {
    auto file =
        fetch_together(state, descriptor, version, followed.path, wishes, {began_ns, 0, offset});
    if (file != nullptr && !file->is_done()) {
      followed = {.file = std::move(file),
                  .company = std::move(presence),
                  .version = version,
                  .began_ns = began_ns};
      return;
    }
    if (file != nullptr) state.prefetcher->release(file);
  }
  if (is_for_page_cache(wishes, Reader::calls) ||
      (has_company && comes_from_page_cache(descriptor, followed.path, wishes, version.size))) {
    auto advised = advise(state, descriptor, version, followed.path, wishes);
    if (!advised) return without(to_string(advised.error()));
    followed = {.advised = *std::move(advised), .version = version};
    return;
  }
  const auto file = fetch(state, descriptor, version, followed.path, std::move(wishes));
  if (!file) return without(to_string(file.error()));
  followed = {
      .file = *file, .presence = std::move(presence), .version = version, .began_ns = began_ns};
  start(state, **file, version);
}

void inherit(Registry& own, int descriptor, const ManagedFile& before, Inherited& inherited) {
  if (const auto known = inherited.find(&before); known != inherited.end()) {
    return list(own, descriptor, known->second);
  }
  const Followed& followed = before.followed;
  // Nothing of it is copied: a child reads the memory of its parent until it writes there.
  auto declared = followed.file == nullptr
                      ? followed.declared
                      : std::shared_ptr<const ReadIntent>(followed.file, &followed.file->intent());
  if (declared == nullptr || before.is_over) return;
  const std::string& path = followed.file == nullptr ? followed.path : followed.file->path();
  ManagedFile& ours =
      follow(own, descriptor, {.declared = declared, .path = path, .version = followed.version});
  ours.position_is_shared = true;
  inherited.emplace(&before, &ours);
}

namespace {

/// With the registry locked: from `offset` on together with other processes, instead of as
/// `before`, if they are near enough. False: there is no memory to share.
bool move_together(Registry& state, ManagedFile& managed, int descriptor, const Followed& before,
                   std::shared_ptr<NodeReaders> company, Bytes offset) {
  if (before.began_ns == 0) return false;  // By a plan of its own, since it was open before.
  const auto version = version_of(descriptor);
  if (!version || !(*version == before.version)) return false;
  const Bytes passed = before.file->figures().bytes_asked_declared;
  auto file = fetch_together(state, descriptor, *version, before.file->path(),
                             before.file->intent(), {before.began_ns, passed, offset});
  if (file == nullptr) return false;
  if (file->is_done()) {
    state.prefetcher->release(file);
    return true;
  }
  release(state, before);
  const WayBefore way = end_way(managed, before);
  const std::lock_guard lock(managed.mutex);
  managed.followed = {.file = std::move(file),
                      .company = std::move(company),
                      .version = *version,
                      .began_ns = before.began_ns,
                      .by_kernel = way.by_kernel,
                      .openings = way.openings};
  return true;
}

}  // namespace

void share(int descriptor, Bytes offset) {
  Registry& state = *registry.load();
  const RegistryLock lock(state);
  ManagedFile* managed = lock ? listed(descriptor) : nullptr;
  if (managed == nullptr) return;
  std::shared_ptr<NodeReaders> presence;
  Followed before;
  {
    const std::lock_guard file_lock(managed->mutex);
    before = managed->followed;
    if (before.file == nullptr) return;
    // The index of the file is read by everybody for himself.
    if (declared_from(before.file->intent().willneed, offset, before.version.size).empty()) return;
    // Gone after this, whether it helps or not: it is asked once.
    presence = std::exchange(managed->followed.presence, nullptr);
  }
  if (presence == nullptr) return;
  if (move_together(state, *managed, descriptor, before, std::move(presence), offset)) return;
  if (comes_from_page_cache(descriptor, before.file->path(), before.file->intent(),
                            before.version.size)) {
    move_to_page_cache(state, *managed, descriptor, offset);
  }
}

void go_on(int descriptor, Bytes offset, bool again, bool is_astray) {
  Registry& state = *registry.load();
  const RegistryLock lock(state);
  ManagedFile* managed = lock ? listed(descriptor) : nullptr;
  if (managed == nullptr) return;
  Followed before;
  {
    const std::lock_guard file_lock(managed->mutex);
    before = managed->followed;
  }
  // Another thread may have seen to it.
  if (before.file == nullptr || before.company == nullptr || !before.file->is_done()) return;
  if (again && !is_astray &&
      move_together(state, *managed, descriptor, before, before.company, offset)) {
    const std::lock_guard file_lock(managed->mutex);
    if (managed->followed.file != before.file) return;
  }
  if (!is_astray && comes_from_page_cache(descriptor, before.file->path(), before.file->intent(),
                                          before.version.size)) {
    managed->is_over = move_to_page_cache(state, *managed, descriptor, offset) == nullptr;
    return;
  }
  ReadIntent rest = before.file->intent();
  rest.willneed =
      is_astray ? std::vector<Extent>{} : declared_from(rest.willneed, offset, before.version.size);
  auto file = rest.willneed.empty() && !is_astray
                  ? nullptr
                  : fetch(state, descriptor, before.version, before.file->path(), std::move(rest))
                        .value_or(nullptr);
  release(state, before);
  managed->is_over = file == nullptr;
  if (file != nullptr) {
    before.by_kernel += managed->by_kernel.take();
    write_record(before);
  }
  const std::lock_guard file_lock(managed->mutex);
  if (file == nullptr) {
    managed->followed.company.reset();
    return;
  }
  managed->followed = {.file = file, .version = before.version, .openings = 0};
  start(state, *file, before.version);
}

bool is_mapped(const Registry& state, const std::shared_ptr<AdvisedFile>& file) {
  return file != nullptr &&
         std::ranges::find(state.mappings, file, &ShownFile::file) != state.mappings.end();
}

namespace {

/// With the registry locked. What ends with its last descriptor, for its record.
std::optional<Followed> part_with(Registry& state, Followed followed) {
  if (is_mapped(state, followed.advised)) {  // It goes on.
    followed.advised->count(followed.by_kernel);
    return std::nullopt;
  }
  if (followed.is_told) {  // Closed by a destructor, or beside exit().
    release(state, followed);
    return std::nullopt;
  }
  if (is_left_alone(followed)) {
    state.left_alone.add(followed);
    return std::nullopt;
  }
  auto ended = state.parked.park(std::move(followed));
  if (ended) release(state, *ended);
  return ended;
}

void close_abandoned(Registry& state) {
  for (std::size_t place = 0;; ++place) {
    std::optional<Followed> ended;
    {
      const RegistryLock lock(state);
      if (!lock || place >= state.files.size()) return;
      ended = part_with(state, unlist_abandoned(state, *state.files[place]));
    }
    if (ended) write_record(*ended);
  }
}

}  // namespace

void close_listed(int descriptor) {
  Registry& state = *registry.load();
  std::optional<Followed> ended;
  {
    const RegistryLock lock(state);
    if (!lock) return abandon(state, descriptor);
    if (ManagedFile* managed = listed(descriptor)) {
      const std::lock_guard file_lock(managed->mutex);
      if (managed->followed.advised != nullptr) managed->followed.advised->closing(descriptor);
    }
    ended = part_with(state, unlist(state, descriptor));
  }
  if (ended) write_record(*ended);
  if (state.has_abandoned.exchange(false)) close_abandoned(state);
  if (const RegistryLock lock(state); lock) close_unlocked();
}

bool stop_serving(FileId id) {
  Registry& state = *registry.load();
  const RegistryLock lock(state);
  if (!lock) return true;  // Nothing is served any more.
  bool was_served = false;
  for (ManagedFile* managed : state.files) {
    const std::lock_guard file_lock(managed->mutex);
    if (!(managed->id == id)) continue;
    if (managed->followed.file != nullptr) {
      managed->followed.file->stop("it was opened for writing");
      was_served = true;
    } else if (managed->is_undecided) {
      managed->followed.left_alone = "it was opened for writing";
      managed->is_over = true;
      was_served = true;
    }
  }
  while (const auto parked = state.parked.take(id, [](const Followed&) { return true; })) {
    end(state, *parked);
    was_served = true;
  }
  return was_served;
}

std::shared_ptr<AdvisedFile> move_to_page_cache(Registry& state, ManagedFile& managed,
                                                int descriptor, Bytes offset) {
  const std::lock_guard lock(managed.mutex);
  Followed& followed = managed.followed;
  if (followed.advised != nullptr) return followed.advised;
  const auto version = version_of(descriptor);
  const ReadIntent* wishes =
      followed.file != nullptr ? &followed.file->intent() : followed.declared.get();
  if (wishes == nullptr || wishes->willneed.empty() || !version || !(version->id == managed.id)) {
    return nullptr;
  }
  const std::string& path = followed.file != nullptr ? followed.file->path() : followed.path;
  ReadIntent rest = *wishes;
  if (offset > 0) rest.willneed = declared_from(wishes->willneed, offset, version->size);
  if (rest.willneed.empty()) rest.willneed = wishes->willneed;
  auto advised = advise(state, descriptor, *version, path, rest);
  if (!advised) return nullptr;
  release(state, followed);
  const WayBefore way = end_way(managed, followed);
  followed = {.advised = *advised,
              .version = *version,
              .by_kernel = way.by_kernel,
              .openings = way.openings};
  managed.is_undecided = false;
  return *advised;
}

}  // namespace forebay::posix
