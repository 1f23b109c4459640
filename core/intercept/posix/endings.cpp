// How what is read ahead ends before its files are closed: with the process or its threads, for
// another program, or since the program wants something that only one of us can have.

#include "core/intercept/posix/endings.hpp"

#include <pthread.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>

#include "core/intercept/posix/internal_descriptors.hpp"
#include "core/intercept/posix/managed_files.hpp"
#include "core/intercept/posix/prefetch_record.hpp"
#include "core/intercept/posix/read_ahead.hpp"
#include "core/intercept/posix/registry.hpp"
#include "core/intercept/posix/ways_to_fetch.hpp"
#include "core/intercept/posix/while_memory_lasts.hpp"
#include "core/storage/file_version.hpp"

namespace forebay::posix {
namespace {

/// Null: there is nothing of this process's to end, or it cannot be in this call.
Registry* registry_to_end() {
  Registry* state = registry.load();
  return state == nullptr || inside || !is_own_process(*state) ? nullptr : state;
}

/// Of mappings whose descriptors are closed.
void write_records_of_mappings(const Registry& state) {
  std::set<std::shared_ptr<AdvisedFile>> told;
  for (const ManagedFile* managed : state.files) told.insert(managed->followed.advised);
  for (const ShownFile& shown : state.mappings) {
    if (!told.insert(shown.file).second) continue;
    write_record({.advised = shown.file, .openings = shown.openings});
  }
}

/// Files that the program leaves open have their records too. At once: what other threads are busy
/// with has none.
void write_last_records(bool at_once) {
  Registry* state = registry_to_end();
  if (state == nullptr) return;
  const Inside guard;
  while_memory_lasts([=] {
    for (unsigned fd = 0; recording && fd < state->listed_end; ++fd) {
      stream_read_inside(static_cast<int>(fd));
    }
    const RegistryLock lock(*state);
    if (!lock) {
      const std::string ended =
          recording ? "no reads were written down any more" : "nothing was read ahead any more";
      write_gave_up_record(ended + ": a file was opened or closed for more than 3 s");
    }
    // What was given up may be free again.
    std::unique_lock<std::mutex> late(state->mutex, std::defer_lock);
    if (!lock && !late.try_lock()) return;
    if (std::exchange(state->has_ended, true)) return;
    if (state->prefetcher != nullptr) state->prefetcher->finish_shared();
    for (ManagedFile* managed : state->files) {
      std::unique_lock file_lock(managed->mutex, std::try_to_lock);
      if (!file_lock && at_once) continue;
      if (!file_lock) file_lock.lock();
      managed->followed.by_kernel += managed->by_kernel.take();
      if (is_left_alone(managed->followed)) {
        state->left_alone.add(managed->followed);
      } else {
        write_record(managed->followed);
      }
      managed->followed.is_told = true;
      managed->followed.presence.reset();
      managed->followed.company.reset();
    }
    for (const Followed& parked : state->parked.take_all()) write_record(parked);
    state->left_alone.write_records();
    write_records_of_mappings(*state);
  });
}

[[gnu::destructor]] void unload() { write_last_records(false); }

}  // namespace

void before_exit() { write_last_records(true); }

namespace {

/// Nothing is read ahead any more of what is open.
void end_reading(Registry& state) {
  const int before = errno;
  const auto with_registry = [&state](auto&& act) {
    const Inside guard;
    while_memory_lasts([&] {
      if (const RegistryLock lock(state); lock) act();
    });
  };
  with_registry([&state] {
    if (state.prefetcher != nullptr) state.prefetcher->finish_shared();
  });
  closing_range(0, UINT_MAX);
  with_registry([&state] {
    end_parked(state);
    state.left_alone.write_records();
    write_records_of_mappings(state);
    forget_all_mappings(state);
  });
  errno = before;
}

}  // namespace

void before_exec() {
  Registry* state = registry_to_end();
  if (state == nullptr) return;
  end_reading(*state);
  const int before = errno;
  const Inside guard;
  if (const RegistryLock lock(*state); lock) keep_through_exec();
  errno = before;
}

namespace {

/// With the registry locked, as long as `wants_more()`: what is read ahead ends, and begins anew
/// with the next opening.
template <typename WantsMore>
void give_up_descriptors(Registry& state, const char* why, WantsMore wants_more) {
  if (wants_more()) {
    for (const Followed& parked : state.parked.take_all()) write_record(parked);
  }
  if (wants_more() && state.prefetcher != nullptr) retire_prefetcher(state, why);
  if (wants_more() && state.adviser != nullptr) {
    state.adviser->end();
    forget_all_mappings(state);
    state.ended.push_back(std::move(state.adviser));
  }
}

}  // namespace

bool give_way(int descriptor) {
  Registry& state = *registry.load();
  // A child that shares our memory has descriptors of its own.
  if (!is_own_process(state)) return true;
  if (inside) return false;
  const int before = errno;
  const Inside guard;
  bool can_give = true;
  while_memory_lasts([&] {
    const RegistryLock lock(state);
    can_give = static_cast<bool>(lock);
    if (!lock) return;
    give_up_descriptors(state, "the program took the number of a descriptor",
                        [descriptor] { return is_internal(descriptor); });
    leave_to_program(descriptor);
    // A file server does not answer, and what is its file's is left as it is.
    can_give = !is_internal(descriptor);
  });
  errno = before;
  return can_give;
}

bool give_way_to_more() {
  Registry* state = registry_to_end();
  if (state == nullptr || !has_internal()) return false;
  const int before = errno;
  const Inside guard;
  while_memory_lasts([&] {
    if (const RegistryLock lock(*state); lock) {
      give_up_descriptors(*state, "the program wanted all descriptors", has_internal);
    }
  });
  errno = before;
  return true;
}

namespace {

/// Whether a descriptor of ours may be of the file.
bool is_read_ahead(Registry& state, FileId id) {
  const Inside guard;
  const RegistryLock lock(state);
  const auto is_its = [&](const ManagedFile* managed) {
    return managed->descriptors > 0 && managed->id == id;
  };
  return lock && (!state.mappings.empty() || std::ranges::any_of(state.files, is_its) ||
                  state.parked.has(id, [](const Followed&) { return true; }));
}

enum class Threads { may_come_again, are_over };

/// What is open is read ahead no more, and none of our threads is left, nor made later if they are
/// over. Whether there was any.
bool end_threads(Registry& state, const char* why, Threads later) {
  end_reading(state);
  const int before = errno;
  bool were_there = false;
  {
    const Inside guard;
    while_memory_lasts([&] {
      if (const RegistryLock lock(state); lock) {
        were_there = state.prefetcher != nullptr || state.adviser != nullptr;
        give_up_descriptors(state, why, [] { return true; });
        if (later == Threads::are_over) state.no_more_threads = why;
      }
    });
  }
  errno = before;
  return were_there;
}

/// Has a value in the first thread alone, whose destructor is called however that thread ends, but
/// not where it ends the process.
pthread_key_t of_first_thread;
bool watches_first_thread = false;

/// The process ends with its last thread then (pthread_exit(3)), for which none of ours may be
/// left.
void first_thread_ends(void*) {
  Registry* state = registry_to_end();
  if (state == nullptr || recording) return;
  if (::gettid() == state->process) {
    end_threads(*state, "the program's first thread ended", Threads::are_over);
  }
}

}  // namespace

void watch_first_thread() {
  if (watches_first_thread) ::pthread_setspecific(of_first_thread, &of_first_thread);
}

void watch_first_threads() {
  watches_first_thread = ::pthread_key_create(&of_first_thread, first_thread_ends) == 0;
  watch_first_thread();
}

bool before_confinement() {
  Registry* state = registry_to_end();
  if (state == nullptr) return false;
  end_threads(*state, "the program confined itself", Threads::may_come_again);
  inside = true;
  return true;
}

void after_no_confinement() { inside = false; }

bool before_unsharing(bool of_descriptors) {
  Registry* state = registry_to_end();
  if (state == nullptr) return false;
  if (of_descriptors) {
    // From then on a number may be one file here and another one there, or none.
    return end_threads(*state, "a thread has descriptors of its own", Threads::are_over);
  }
  return end_threads(*state, "the program changed its namespaces", Threads::may_come_again);
}

void before_write_lease(int descriptor) {
  Registry* state = registry_to_end();
  if (state == nullptr) return;
  const auto version = version_of(descriptor);
  if (!version || !is_read_ahead(*state, version->id)) return;
  end_threads(*state, "the program asked for a lease of a file", Threads::may_come_again);
}

}  // namespace forebay::posix
