// Files that are read by ways that are not seen: by C streams and through mappings.

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <mutex>
#include <utility>

#include "core/intercept/posix/internal_descriptors.hpp"
#include "core/intercept/posix/managed_files.hpp"
#include "core/intercept/posix/missed_ranges.hpp"
#include "core/intercept/posix/read_ahead.hpp"
#include "core/intercept/posix/recorded_reads.hpp"
#include "core/intercept/posix/registry.hpp"
#include "core/intercept/posix/while_memory_lasts.hpp"
#include "core/storage/descriptor.hpp"
#include "core/storage/read_progress.hpp"

namespace forebay::posix {

constinit std::atomic<bool> detail::has_mappings{false};

namespace {

/// Beyond so many at a time mappings are left to the kernel.
constexpr std::size_t most_mappings = 64;
MissedRanges missed;

/// With the registry locked: what was shown in [begin, end) is not any more.
void forget_shown(Registry& state, std::uintptr_t begin, std::uintptr_t end) {
  for (std::size_t i = state.mappings.size(); i-- > 0;) {
    if (begin >= state.mappings[i].end || end <= state.mappings[i].begin) continue;
    const ShownFile shown = state.mappings[i];
    state.shown_memory.take_away(shown.begin, shown.end);
    state.mappings.erase(state.mappings.begin() + static_cast<std::ptrdiff_t>(i));
    shown.file->forget(shown.progress);
    const bool is_open = std::ranges::any_of(state.files, [&](ManagedFile* managed) {
      const std::lock_guard file_lock(managed->mutex);
      return managed->followed.advised == shown.file;
    });
    if (is_open || is_mapped(state, shown.file)) continue;
    while_memory_lasts([&] { write_record({.advised = shown.file, .openings = shown.openings}); });
  }
  detail::has_mappings = !state.mappings.empty();
}

/// With the registry locked.
void forget_missed(Registry& state) {
  missed.take([&](std::uintptr_t begin, std::uintptr_t end) { forget_shown(state, begin, end); });
}

/// Calls `act`, with the registry locked, for what is listed of `descriptor` by a program whose
/// reads are not written down. errno stays.
template <typename Act>
void with_listed(int descriptor, Act&& act) {
  if (inside || recording || !is_own_process(*registry.load())) return;
  const int before = errno;
  const Inside guard;
  while_memory_lasts([&] {
    Registry& state = *registry.load();
    const RegistryLock lock(state);
    if (!lock) return;
    forget_missed(state);
    if (ManagedFile* managed = listed(descriptor)) act(state, *managed);
  });
  errno = before;
}

}  // namespace

void is_stream(int descriptor) {
  if (recording && !inside && is_own_process(*registry.load())) {
    const int before = errno;
    record_stream(descriptor);
    errno = before;
  }
  with_listed(descriptor, [&](Registry& state, ManagedFile& managed) {
    const auto file = move_to_page_cache(state, managed, descriptor);
    if (file != nullptr) file->watch(std::make_shared<PositionProgress>(descriptor, managed.id));
  });
}

void mapped(int descriptor, void* address, size_t length, off_t offset) {
  with_listed(descriptor, [&](Registry& state, ManagedFile& managed) {
    // Each takes a descriptor.
    if (state.mappings.size() >= most_mappings || descriptors_run_short()) return;
    const auto begin = reinterpret_cast<std::uintptr_t>(address);
    const std::uintptr_t end = begin + length;
    auto place = state.shown_memory.add(begin, end);
    if (!place) return;
    const auto file = move_to_page_cache(state, managed, descriptor);
    if (file == nullptr) return;
    auto progress = protect(std::make_unique<MappedProgress>(
        Mapping{begin, static_cast<Bytes>(length), offset}, *std::move(place)));
    state.mappings.push_back({begin, end, file, progress, managed.followed.openings});
    detail::has_mappings = true;  // Before it is watched: who unmaps it asks this first.
    file->watch(std::move(progress));
  });
}

void forget_all_mappings(Registry& state) {
  state.mappings.clear();
  state.shown_memory.take_away(0, std::numeric_limits<std::uintptr_t>::max());
}

void unmapped(void* address, size_t length) {
  const auto begin = reinterpret_cast<std::uintptr_t>(address);
  Registry& state = *registry.load();
  if (!is_own_process(state)) return;
  const int before = errno;
  const bool was_shown = state.shown_memory.take_away(begin, begin + length);
  errno = before;
  if (!was_shown) return;
  if (inside) return missed.add(begin, begin + length);
  const Inside guard;
  // An allocator may come here around a fork, when the lock is held by its own thread. What is
  // looked at in vain meanwhile does no harm: the kernel is asked about pages and given advice that
  // loses nothing.
  const std::unique_lock lock(state.mutex, std::try_to_lock);
  if (lock.owns_lock()) {
    forget_missed(state);
    forget_shown(state, begin, begin + length);
  } else {
    missed.add(begin, begin + length);
  }
  errno = before;
}

}  // namespace forebay::posix
