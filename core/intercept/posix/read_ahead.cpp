#include "core/intercept/posix/read_ahead.hpp"

#include <algorithm>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "core/engine/prefetch/node_readers.hpp"
#include "core/engine/prefetch/prefetcher.hpp"
#include "core/engine/prefetch/steady_time.hpp"
#include "core/intercept/posix/internal_descriptors.hpp"
#include "core/intercept/posix/ways_to_fetch.hpp"
#include "core/model/read_intent.hpp"
#include "core/plan/declared_parts.hpp"
#include "core/storage/read_progress.hpp"

namespace forebay::posix {
namespace {

/// By what is read of it, it can be told which of those that are kept goes on.
bool is_told_by_reads(const ReadIntent& wishes, Reader reader) {
  return reader == Reader::calls && wishes.policy != ReadPolicy::mercury;
}

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

/// Nothing is fetched of what `descriptor` was opened for; but its reads are counted.
void follow_left_alone(Registry& state, int descriptor, const FileVersion& version,
                       const char* path, std::string why) {
  follow(state, descriptor, {.path = path, .version = version, .left_alone = std::move(why)})
      .is_over = true;
}

/// Who reads by MPI-IO opens a file before it is known what each process reads of it.
bool is_opened_early(Reader reader) { return fetches_later && reader == Reader::calls; }

bool is_brought_to_page_cache(const ReadIntent& wishes, Reader reader) {
  return !is_opened_early(reader) && is_for_page_cache(wishes, reader);
}

/// With the registry locked. Its first read will decide(). `unread`: what is told if there is none.
ManagedFile& follow_undecided(Registry& state, int descriptor, const FileVersion& version,
                              const char* path, std::shared_ptr<const ReadIntent> wishes,
                              const char* unread = "") {
  return follow(
      state, descriptor,
      {.declared = std::move(wishes), .path = path, .version = version, .left_alone = unread});
}

/// What was kept of a file of these `wishes` may go on with this opening, or its reads tell what
/// is to be fetched. False: nothing was fetched of it before, or not for these.
bool take_up(Registry& state, int descriptor, const FileVersion& version, const char* path,
             const std::shared_ptr<const ReadIntent>& wishes, Reader reader) {
  const RegistryLock lock(state);
  if (!lock) return true;  // Nothing is followed any more.
  close_unlocked();
  const bool is_told = is_told_by_reads(*wishes, reader);
  if (!is_told && take_up_advised(state, descriptor, version, reader)) return true;
  const bool is_advised_anew = !is_told && is_brought_to_page_cache(*wishes, reader);
  const bool is_reopened = is_told && state.parked.is_reopened(version.id);
  if (is_advised_anew || !(is_reopened || state.parked.holds(version.id))) return false;
  follow_undecided(state, descriptor, version, path, wishes);
  return true;
}

/// What is declared of it, by openings before this one.
bool is_read_again(Registry& state, const FileVersion& version, const ReadIntent& wishes) {
  if (!is_free(wishes)) return false;
  const RegistryLock lock(state);
  return lock && state.earlier.are_repeated(version);
}

}  // namespace

void manage(int descriptor, const FileVersion& version, const char* path,
            const DeclaredReads::Sections& sections, Reader reader) {
  Registry& state = *registry.load();
  auto wishes = DeclaredReads::together(sections);
  auto passed = PageCacheFetch::Passed::is_taken_out;
  if (is_read_again(state, version, *wishes)) {
    passed = PageCacheFetch::Passed::stays;
    if (wishes->willneed.empty()) return leave_alone(path, read_before);
    auto by_page_cache = std::make_shared<ReadIntent>(*wishes);
    by_page_cache->policy = ReadPolicy::page_cache;
    wishes = std::move(by_page_cache);
  }
  if (take_up(state, descriptor, version, path, wishes, reader)) return;
  // Without the lock: a file server may never answer.
  const TimesTell told = times_tell(descriptor);
  if (told == TimesTell::nothing) {
    return leave_alone(path, silent_times);
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
    auto advised = advise(state, descriptor, version, path, *wishes, passed);
    if (!advised) return without(to_string(advised.error()));
    if (reader == Reader::stream) {
      (*advised)->watch(std::make_shared<PositionProgress>(descriptor, version.id));
    }
    follow(state, descriptor, {.advised = *std::move(advised), .version = version});
  };
  const auto undecided = [&](const char* unread = "") {
    follow_undecided(state, descriptor, version, path, wishes, unread).times_are_told = true;
  };
  if (is_opened_early(reader)) return undecided();
  if (is_brought_to_page_cache(*wishes, reader)) return by_page_cache();
  // Streams of C++ read by calls, and may show a pattern. What C streams read is not seen.
  if (reader == Reader::stream) {
    return undecided("a stream read it, whose order cannot be found out");
  }
  auto presence = announced(state, version, *wishes);
  const std::int64_t began_ns = steady_ns();
  if (presence != nullptr && presence->has_company()) {
    // Nobody waits for it before its first read, and it is not too far from anybody.
    auto together = fetch_together(state, descriptor, version, path, *wishes, {began_ns}, 0, 1);
    if (together.file != nullptr) {
      follow(state, descriptor,
             {.file = std::move(together.file),
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

void read_again(int descriptor, Bytes offset, EarlierReads& earlier) {
  Registry& state = *registry.load();
  const RegistryLock lock(state);
  ManagedFile* managed = lock ? listed(descriptor) : nullptr;
  if (managed == nullptr) return;
  std::shared_ptr<ServedFile> file;
  Bytes size = 0;
  {
    const std::lock_guard file_lock(managed->mutex);
    // Another thread may have seen to it, or opened another file there.
    if (managed->earlier.get() != &earlier) return;
    file = managed->followed.file;
    size = managed->followed.version.size;
  }
  if (file == nullptr) return;
  const ReadIntent& wishes = file->intent();
  const bool may_move =
      is_free(wishes) && comes_from_page_cache(descriptor, file->path(), wishes, size);
  if (may_move && wishes.willneed.empty()) {
    file->stop(read_before);
    managed->is_over = true;
  } else if (!may_move || move_to_page_cache(state, *managed, descriptor, offset) == nullptr) {
    earlier.stop();
  }
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
  if (followed.declared != nullptr) {
    // A stream or a mapping goes on with what was kept: its reads are not seen.
    const auto is_kept = [&](const Followed& parked) {
      return is_advised(parked) && parked.version == *version;
    };
    if (auto parked = state.parked.take(managed.id, is_kept)) {
      go_on_with(managed, *std::move(parked));
      return followed.advised;
    }
  }
  const std::string& path = followed.file != nullptr ? followed.file->path() : followed.path;
  ReadIntent rest = *wishes;
  if (offset > 0) rest.willneed = declared_from(wishes->willneed, offset, version->size);
  if (rest.willneed.empty()) rest.willneed = wishes->willneed;
  auto advised = advise(state, descriptor, *version, path, rest, passed_of(managed));
  if (!advised) return nullptr;
  release(state, followed);
  const WayBefore way = end_way(managed, followed);
  follow_as(managed, {.advised = *advised,
                      .version = *version,
                      .by_kernel = way.by_kernel,
                      .openings = way.openings});
  return *advised;
}

}  // namespace forebay::posix
