#include "core/intercept/posix/ways_to_fetch.hpp"

#include <algorithm>
#include <mutex>
#include <utility>

#include "core/engine/prefetch/page_cache_fetch.hpp"
#include "core/engine/prefetch/prefetcher.hpp"
#include "core/intercept/posix/internal_descriptors.hpp"
#include "core/plan/block_advice.hpp"
#include "core/plan/declared_parts.hpp"
#include "core/plan/extent_advice.hpp"
#include "core/storage/fetch_source.hpp"

namespace forebay::posix {
namespace {

tl::unexpected<Error> no_thread(const Registry& state) {
  const char* why =
      state.no_more_threads != nullptr ? state.no_more_threads : "no thread is to be had";
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

/// Smaller files are not worth the shared memory.
constexpr Bytes smallest_shared = MiB;

/// Readers begin a little apart if it is less than this part of their memory.
constexpr Bytes part_apart = 4;

}  // namespace

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

Together fetch_together(Registry& state, int descriptor, const FileVersion& version,
                        const std::string& path, const ReadIntent& wishes,
                        const SharedWindow::Before& before, int first, int end) {
  Prefetcher* prefetcher = prefetcher_of(state);
  if (prefetcher == nullptr) return {};
  // What others have fetched must not be older than the program's opening.
  if (const auto now = served_version_of(descriptor); !now || !(*now == version)) return {};
  const ReadIntent shared = fitted(wishes, version);
  for (int group = first; group < end; ++group) {
    auto source = open_protected_source(descriptor, path);
    // A page cache could hold what no change of times tells of.
    if (!source || !(*source)->is_direct()) return {};
    const auto file = prefetcher->add_shared(path, *std::move(source), shared, version, before,
                                             file_clock_ns(), group);
    if (!file) return {};
    if (!(*file)->is_done()) return {*file, group};
    prefetcher->release(*file);
  }
  return {.file = nullptr, .is_too_far = true};
}

ReadIntent wishes_around(const ReadIntent& whole, const FileVersion& version, Bytes offset) {
  ReadIntent wishes = whole;
  const Bytes unit = std::max<Bytes>(budget_for(whole, version) / part_apart, 1);
  wishes.willneed = declared_around(whole.willneed, offset, version.size, unit);
  return wishes;
}

void start(const Registry& state, ServedFile& file, const FileVersion& version) {
  file.start(version, file_clock_ns());
  state.prefetcher->wake();
}

Result<std::shared_ptr<AdvisedFile>> advise(Registry& state, int descriptor,
                                            const FileVersion& version, const std::string& path,
                                            const ReadIntent& wishes,
                                            PageCacheFetch::Passed passed) {
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
  // Who keeps what he has passed would hold up who waits for him to pass it.
  auto readers = passed == PageCacheFetch::Passed::stays
                     ? nullptr
                     : NodeReaders::join(version, advice->plan().extents(), budget);
  auto fetch = std::make_unique<PageCacheFetch>(std::move(readers), version.size,
                                                advice->plan().extents(), passed);
  return adviser->add(path, *std::move(source), std::move(advice), std::move(fetch));
}

PageCacheFetch::Passed passed_of(const ManagedFile& managed) {
  const bool is_repeated = managed.earlier != nullptr && managed.earlier->are_repeated();
  return is_repeated ? PageCacheFetch::Passed::stays : PageCacheFetch::Passed::is_taken_out;
}

bool is_free(const ReadIntent& wishes) {
  return wishes.policy.value_or(ReadPolicy::automatic) == ReadPolicy::automatic;
}

bool is_for_page_cache(const ReadIntent& wishes, Reader reader) {
  if (wishes.policy == ReadPolicy::mercury) return true;
  return !wishes.willneed.empty() &&
         (wishes.policy == ReadPolicy::page_cache || reader == Reader::stream);
}

std::shared_ptr<NodeReaders> announced(Registry& state, const FileVersion& version,
                                       const ReadIntent& wishes) {
  if (!is_free(wishes) || wishes.willneed.empty() || version.size < smallest_shared) return nullptr;
  std::erase_if(state.announced, [](const auto& known) { return known.presence.expired(); });
  const auto known = std::ranges::find(state.announced, version, &AnnouncedFile::version);
  std::shared_ptr<NodeReaders> presence;
  if (known != state.announced.end()) presence = known->presence.lock();
  if (presence != nullptr) return presence;
  presence = NodeReaders::join(version, {}, budget_for(wishes, version));
  if (presence != nullptr) state.announced.push_back({version, presence});
  return presence;
}

bool comes_from_page_cache(int descriptor, const std::string& path, const ReadIntent& wishes,
                           Bytes size) {
  const Extent first =
      wishes.willneed.empty() ? Extent{0, size} : first_declared(wishes.willneed, size);
  if (first.empty()) return false;
  const auto source = open_protected_source(descriptor, path, Through::page_cache);
  return source && !PageCacheFetch::is_in_vain(**source, first);
}

namespace {

/// `act` with what is read of the file by other openings than `own`, or was kept.
template <typename Act>
void for_others(Registry& state, FileId id, const ManagedFile& own, Act act) {
  for (ManagedFile* other : state.files) {
    if (other == &own || !(other->id == id)) continue;
    const std::lock_guard lock(other->mutex);
    if (other->followed.file != nullptr) act(other->followed);
  }
  state.parked.for_each(id, [&](const Followed& parked) {
    if (parked.file != nullptr) act(parked);
  });
}

}  // namespace

void part_at(Registry& state, FileId id, Bytes offset, const ManagedFile& own) {
  for_others(state, id, own, [offset](const Followed& other) {
    if (other.is_taken_up) other.file->end_before(offset);
  });
}

void part_from_others(Registry& state, FileId id, ServedFile& file, const ManagedFile& own) {
  for_others(state, id, own, [&file](const Followed& other) {
    if (other.begins_at) file.end_before(*other.begins_at);
  });
}

void follow_as(ManagedFile& managed, Followed followed) {
  managed.followed = std::move(followed);
  managed.is_undecided = false;
  if (is_advised(managed.followed)) managed.times_tell_late = false;  // Nothing is served.
}

void go_on_with(ManagedFile& managed, Followed parked) {
  parked.openings += managed.followed.openings;
  follow_as(managed, std::move(parked));
}

void release(Registry& state, const Followed& followed) {
  if (followed.file != nullptr && state.prefetcher != nullptr) {
    state.prefetcher->release(followed.file);
  }
}

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

void end_parked(Registry& state) {
  for (const Followed& followed : state.parked.take_all()) end(state, followed);
}

}  // namespace forebay::posix
