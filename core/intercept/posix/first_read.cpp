#include <algorithm>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/engine/prefetch/steady_time.hpp"
#include "core/intercept/posix/internal_descriptors.hpp"
#include "core/intercept/posix/read_ahead.hpp"
#include "core/intercept/posix/ways_to_fetch.hpp"
#include "core/plan/declared_parts.hpp"
#include "core/plan/fetch_window.hpp"
#include "core/storage/file_version.hpp"

namespace forebay::posix {
namespace {

/// A child begins with this read by offset of what its parent opened: many make one and end.
constexpr int fewest_inherited = 3;

/// With the registry locked.
void leave_undecided_alone(ManagedFile& managed, std::string why) {
  managed.is_undecided = false;
  managed.is_over = true;
  managed.followed.left_alone = std::move(why);
}

/// With the registry locked. Of the index of the file, or of what nobody declared, or not for now.
void read_elsewhere(ManagedFile& managed) {
  managed.is_over = ++managed.reads_undecided > most_strays;
}

/// Something is declared there, or the order of reads is to be found out wherever they are.
bool is_wanted(const ReadIntent& declared, Bytes offset, Bytes size) {
  return declared.willneed.empty() || is_declared(declared.willneed, offset, size);
}

/// Of what is kept, for a read at `offset`.
auto who_foresees(Bytes offset) {
  return [offset](const Followed& parked) {
    return parked.file != nullptr ? parked.file->foresees(offset)
                                  : parked.advised->foresees(offset);
  };
}

}  // namespace

bool may_decide(int descriptor, Bytes offset) {
  Registry& state = *registry.load();
  FileId id;
  {
    const RegistryLock lock(state);
    ManagedFile* managed = lock ? listed(descriptor) : nullptr;
    if (managed == nullptr) return false;
    id = managed->id;
    const std::lock_guard file_lock(managed->mutex);
    const Followed& followed = managed->followed;
    if (followed.declared == nullptr || state.parked.has(id, who_foresees(offset))) return true;
    const bool may_begin = state.parked.may_begin(id);
    if (!is_wanted(*followed.declared, offset, followed.version.size) ||
        !(may_begin || state.parked.has(id, is_advised))) {
      read_elsewhere(*managed);
      return false;
    }
    if (managed->times_are_told || !may_begin) return true;
  }
  // Without the locks: a file server may never answer.
  const TimesTell told = times_tell(descriptor);
  const RegistryLock lock(state);
  ManagedFile* managed = lock ? listed(descriptor) : nullptr;
  if (managed == nullptr || !(managed->id == id)) return false;
  const std::lock_guard file_lock(managed->mutex);
  if (told == TimesTell::nothing) {
    if (managed->is_undecided) leave_undecided_alone(*managed, silent_times);
    return false;
  }
  if (told == TimesTell::once_written) {
    state.late_devices.insert(id.device);
    managed->times_tell_late = true;
  }
  managed->times_are_told = true;
  return true;
}

void decide(int descriptor, const FileVersion& version, Bytes offset) {
  Registry& state = *registry.load();
  const RegistryLock lock(state);
  ManagedFile* managed = lock ? listed(descriptor) : nullptr;
  if (managed == nullptr) return;
  std::unique_lock file_lock(managed->mutex);
  Followed& followed = managed->followed;
  if (followed.declared == nullptr || !(version.id == managed->id)) return;
  const auto is_stale = [&](const Followed& parked) { return !(parked.version == version); };
  while (const auto stale = state.parked.take(version.id, is_stale)) {
    if (stale->file != nullptr) stale->file->stop("the file was changed");
    end(state, *stale);
  }
  const auto take_up = [&](Followed parked) {
    const bool is_first_time = !std::exchange(parked.is_taken_up, true);
    go_on_with(*managed, std::move(parked));
    const auto file = followed.file;
    file_lock.unlock();  // What follows locks other files.
    if (is_first_time && file != nullptr) part_from_others(state, version.id, *file, *managed);
  };
  if (auto parked = state.parked.take(version.id, who_foresees(offset))) {
    return take_up(*std::move(parked));
  }
  if (!is_wanted(*followed.declared, offset, version.size)) return read_elsewhere(*managed);
  if (!state.parked.may_begin(version.id)) {
    auto parked = state.parked.take(version.id, is_advised);
    return parked ? take_up(*std::move(parked)) : read_elsewhere(*managed);
  }
  // What was kept for this read is gone or old. The next one asks.
  if (!managed->times_are_told) return;
  const bool is_inherited = managed->position_is_shared;
  if (is_inherited && ++managed->reads_inherited < fewest_inherited) return;
  managed->is_undecided = false;
  state.parked.begins(version.id);
  const auto without = [&](std::string why) { leave_undecided_alone(*managed, std::move(why)); };
  if (descriptors_run_short()) {
    end_parked(state);
    return without(few_descriptors);
  }
  ReadIntent wishes = *followed.declared;
  wishes.willneed = declared_from(followed.declared->willneed, offset, version.size);
  // Others may read it, too: of what is inherited the parent, and other children.
  auto presence = announced(state, version, wishes);
  const bool has_company = presence != nullptr && presence->has_company();
  const std::int64_t began_ns = is_inherited ? 0 : steady_ns();
  bool is_too_far = false;
  if (has_company && !is_inherited) {
    auto together = fetch_together(state, descriptor, version, followed.path,
                                   wishes_around(*followed.declared, version, offset),
                                   {began_ns, 0, offset}, 0, most_groups);
    if (together.file != nullptr) {
      followed = {.file = std::move(together.file),
                  .company = std::move(presence),
                  .group = together.group,
                  .version = version,
                  .began_ns = began_ns,
                  .begins_at = offset,
                  .whole = followed.declared};
      file_lock.unlock();
      part_at(state, version.id, offset, *managed);
      return;
    }
    is_too_far = together.is_too_far;
  }
  // What is brought to the page cache for one who is too far from the others is nothing to them.
  if (is_for_page_cache(wishes, Reader::calls) ||
      (has_company && !is_too_far &&
       comes_from_page_cache(descriptor, followed.path, wishes, version.size))) {
    auto advised = advise(state, descriptor, version, followed.path, wishes, passed_of(*managed));
    if (!advised) return without(to_string(advised.error()));
    return follow_as(*managed, {.advised = *std::move(advised), .version = version});
  }
  const auto file = fetch(state, descriptor, version, followed.path, std::move(wishes));
  if (!file) return without(to_string(file.error()));
  // Who is too far from the others has asked them.
  followed = {.file = *file,
              .presence = is_too_far ? nullptr : presence,
              .company = is_too_far ? presence : nullptr,
              .version = version,
              .began_ns = began_ns,
              .begins_at = offset,
              .whole = followed.declared};
  file_lock.unlock();
  part_at(state, version.id, offset, *managed);
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

}  // namespace forebay::posix
