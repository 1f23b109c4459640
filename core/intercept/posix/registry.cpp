#include "core/intercept/posix/registry.hpp"

#include <algorithm>
#include <system_error>
#include <utility>

#include "core/intercept/posix/internal_descriptors.hpp"
#include "core/storage/bounded_lock.hpp"
#include "core/storage/read_queue.hpp"

namespace forebay::posix {
namespace {

constexpr Bytes memory_of_a_process = 64 * MiB;
constexpr int requests_under_way = 32;

/// It has so many descriptors less. What it was of, if none is left.
Followed lose(Registry& state, ManagedFile& managed, int descriptors) {
  managed.descriptors -= descriptors;
  if (managed.descriptors > 0) return {};
  Followed followed;
  {
    const std::lock_guard lock(managed.mutex);
    followed = std::exchange(managed.followed, {});
    managed.earlier.reset();
  }
  followed.by_kernel += managed.by_kernel.take();
  managed.is_undecided = false;
  state.pool.push_back(&managed);
  return followed;
}

}  // namespace

/// Not once it was stuck: it does not know of what was opened and closed meanwhile.
RegistryLock::RegistryLock(Registry& state) {
  if (!state.is_stuck.load()) lock_ = lock_unless_stuck(state.mutex, state.is_stuck);
}

namespace detail {
std::array<std::atomic<ManagedFile*>, most_descriptors> listed_files{};
}  // namespace detail

constinit thread_local bool inside = false;
constinit thread_local long waits_when_asked = 0;
std::atomic<Registry*> registry{nullptr};
bool recording = false;
bool uses_uring = true;

void retire_prefetcher(Registry& state, const char* why) {
  if (!state.prefetcher->end(why)) {
    for (const int descriptor : state.queue_descriptors) set_internal(descriptor, false);
  }
  state.queue_descriptors.clear();
  state.gave_way.push_back(std::move(state.prefetcher));
}

Prefetcher* prefetcher_of(Registry& state) {
  if (state.prefetcher != nullptr && state.prefetcher->has_broken_queue()) {
    // The program confined itself since. Threads may do what its ring may not.
    state.uring_broke = true;
    retire_prefetcher(state, "the queue of reads broke");
  }
  if (state.prefetcher != nullptr || state.prefetcher_failed || state.no_more_threads != nullptr) {
    return state.prefetcher.get();
  }
  std::unique_ptr<ReadQueue> queue;
  if (uses_uring && !state.uring_broke) {
    // As long as reads are under way nobody else gets their numbers.
    queue = make_uring_queue(requests_under_way,
                             [](int descriptor) { set_internal(descriptor, false); });
  }
  if (queue == nullptr) queue = make_thread_queue(requests_under_way);
  state.queue_descriptors = queue->descriptors();
  for (const int descriptor : state.queue_descriptors) set_internal(descriptor, true);
  try {
    state.prefetcher =
        std::make_unique<Prefetcher>(std::move(queue), memory_of_a_process, [] { inside = true; });
  } catch (const std::exception&) {  // No thread is to be had: nothing is read ahead.
    state.queue_descriptors.clear();
    state.prefetcher_failed = true;
  }
  return state.prefetcher.get();
}

Adviser* adviser_of(Registry& state) {
  if (state.no_more_threads != nullptr) return nullptr;
  try {
    if (state.adviser == nullptr) state.adviser = std::make_unique<Adviser>([] { inside = true; });
  } catch (const std::system_error&) {  // No thread is to be had: no advice is given.
    return nullptr;
  }
  return state.adviser.get();
}

void list(Registry& state, int descriptor, ManagedFile* managed) {
  state.listed_end = std::max(state.listed_end.load(), static_cast<unsigned>(descriptor) + 1);
  ++managed->descriptors;
  detail::listed_files[static_cast<unsigned>(descriptor)].store(managed, std::memory_order_release);
}

void leave_alone(const char* path, const char* why) {
  Registry& state = *registry.load();
  const RegistryLock lock(state);
  if (lock) state.left_alone.add({.path = path, .left_alone = why});
}

void abandon(Registry& state, int descriptor) {
  ManagedFile* managed = detail::listed_files[static_cast<unsigned>(descriptor)].exchange(nullptr);
  if (managed == nullptr) return;
  ++managed->abandoned;
  state.has_abandoned = true;
}

Followed unlist(Registry& state, int descriptor) {
  ManagedFile* managed = detail::listed_files[static_cast<unsigned>(descriptor)].exchange(nullptr);
  return managed == nullptr ? Followed() : lose(state, *managed, 1);
}

Followed unlist_abandoned(Registry& state, ManagedFile& managed) {
  const int gone = managed.abandoned.exchange(0);
  return gone == 0 ? Followed() : lose(state, managed, gone);
}

ManagedFile& follow(Registry& state, int descriptor, Followed followed) {
  if (state.pool.empty()) {
    state.files.push_back(new ManagedFile);
    state.pool.reserve(state.files.size());  // All come back without asking for memory.
    state.pool.push_back(state.files.back());
  }
  ManagedFile* managed = state.pool.back();
  state.pool.pop_back();
  managed->id = followed.version.id;
  managed->times_tell_late =
      followed.advised == nullptr && state.late_devices.contains(managed->id.device);
  managed->position_is_shared = false;
  managed->is_over = false;
  managed->asker = nullptr;
  managed->is_undecided = followed.declared != nullptr;
  managed->times_are_told = false;
  managed->reads_undecided = 0;
  managed->reads_inherited = 0;
  managed->stream = -1;
  managed->by_kernel.take();
  {
    const std::lock_guard lock(managed->mutex);
    const bool is_served = followed.file != nullptr || followed.declared != nullptr;
    managed->earlier = is_served ? state.earlier.of(followed.version) : nullptr;
    managed->followed = std::move(followed);
  }
  list(state, descriptor, managed);
  return *managed;
}

}  // namespace forebay::posix
