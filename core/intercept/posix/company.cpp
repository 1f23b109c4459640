#include <mutex>
#include <utility>

#include "core/engine/prefetch/prefetcher.hpp"
#include "core/intercept/posix/read_ahead.hpp"
#include "core/intercept/posix/ways_to_fetch.hpp"
#include "core/plan/declared_parts.hpp"

namespace forebay::posix {
namespace {

/// With the registry locked: from `offset` on together with other processes, instead of as
/// `before`, if they are near enough; with those of a group from `first` to `end`. False: there is
/// no memory to share.
bool move_together(Registry& state, ManagedFile& managed, int descriptor, const Followed& before,
                   std::shared_ptr<NodeReaders> company, Bytes offset, int first, int end) {
  if (before.began_ns == 0) return false;  // By a plan of its own, since it was open before.
  const auto version = version_of(descriptor);
  if (!version || !(*version == before.version)) return false;
  const Bytes passed = before.file->figures().bytes_asked_declared;
  const ReadIntent wishes = before.whole == nullptr ? before.file->intent()
                                                    : wishes_around(*before.whole, *version,
                                                                    before.begins_at.value_or(0));
  if (before.file->is_done()) release(state, before);  // Its memory may be wanted.
  auto [file, group, is_too_far] =
      fetch_together(state, descriptor, *version, before.file->path(), wishes,
                     {before.began_ns, passed, offset}, first, end);
  if (file == nullptr) return is_too_far;
  if (before.is_taken_up) part_from_others(state, version->id, *file, managed);
  release(state, before);
  const WayBefore way = end_way(managed, before);
  const std::lock_guard lock(managed.mutex);
  managed.followed = {.file = std::move(file),
                      .company = std::move(company),
                      .group = group,
                      .version = *version,
                      .began_ns = before.began_ns,
                      .begins_at = before.begins_at,
                      .whole = before.whole,
                      .is_taken_up = before.is_taken_up,
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
    if (!is_declared(before.file->intent().willneed, offset, before.version.size)) return;
    // Gone after this, whether it helps or not: it is asked once.
    presence = std::exchange(managed->followed.presence, nullptr);
  }
  if (presence == nullptr) return;
  if (move_together(state, *managed, descriptor, before, std::move(presence), offset, 0, 1)) return;
  if (comes_from_page_cache(descriptor, before.file->path(), before.file->intent(),
                            before.version.size)) {
    move_to_page_cache(state, *managed, descriptor, offset);
  }
}

void go_on(int descriptor, Bytes offset, const ServedFile::Served& served) {
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
  const int first = served.again ? before.group : before.group + 1;
  if ((served.again || served.behind) && !served.astray &&
      move_together(state, *managed, descriptor, before, before.company, offset, first,
                    most_groups)) {
    const std::lock_guard file_lock(managed->mutex);
    if (managed->followed.file != before.file) return;
  }
  const auto has_page_cache = [&] {
    return comes_from_page_cache(descriptor, before.file->path(), before.file->intent(),
                                 before.version.size);
  };
  if (!served.astray && has_page_cache()) {
    managed->is_over = move_to_page_cache(state, *managed, descriptor, offset) == nullptr;
    return;
  }
  ReadIntent rest = before.file->intent();
  rest.willneed = served.astray ? std::vector<Extent>{}
                                : declared_from(rest.willneed, offset, before.version.size);
  // What the kernel brings serves all of them; by guessing each would fetch for itself.
  const bool guesses = served.astray && !(before.company->has_company() && has_page_cache());
  auto file = rest.willneed.empty() && !guesses
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
    if (!served.astray) managed->followed.company.reset();  // Else it is still the others' company.
    return;
  }
  managed->followed = {.file = file, .version = before.version, .openings = 0};
  start(state, *file, before.version);
}

}  // namespace forebay::posix
