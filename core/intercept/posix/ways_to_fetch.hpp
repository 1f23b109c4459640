#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "core/engine/prefetch/adviser.hpp"
#include "core/engine/prefetch/node_readers.hpp"
#include "core/engine/prefetch/page_cache_fetch.hpp"
#include "core/engine/prefetch/served_file.hpp"
#include "core/engine/prefetch/shared_window.hpp"
#include "core/intercept/posix/managed_files.hpp"
#include "core/intercept/posix/registry.hpp"
#include "core/model/error.hpp"
#include "core/model/read_intent.hpp"
#include "core/storage/file_version.hpp"

namespace forebay::posix {

// The ways in which a file can be read ahead, and how they begin and end. All with the registry
// locked.

/// Into memory of the process, from start() on. Error: nothing can be.
Result<std::shared_ptr<ServedFile>> fetch(Registry& state, int descriptor,
                                          const FileVersion& version, const std::string& path,
                                          ReadIntent wishes);
void start(const Registry& state, ServedFile& file, const FileVersion& version);

/// So many groups may read a file together, each apart from the others.
constexpr int most_groups = 3;

/// What is fetched together with other processes.
struct Together {
  std::shared_ptr<ServedFile> file;  ///< Null: that cannot be, or not with these.
  int group = 0;
  bool is_too_far = false;  ///< From all of them.
};
/// With those of the group `first`, or, if they are too far away, of a later one before `end`.
/// `before`: what the program has read of it until now.
Together fetch_together(Registry& state, int descriptor, const FileVersion& version,
                        const std::string& path, const ReadIntent& wishes,
                        const SharedWindow::Before& before, int first, int end);

/// What readers have in common who begin at `offset`, or a little apart from there, by what is
/// declared in `whole`.
ReadIntent wishes_around(const ReadIntent& whole, const FileVersion& version, Bytes offset);

/// Into the page cache; `passed`: what becomes of it there. Error: nothing can be told of this
/// file.
Result<std::shared_ptr<AdvisedFile>> advise(Registry& state, int descriptor,
                                            const FileVersion& version, const std::string& path,
                                            const ReadIntent& wishes,
                                            PageCacheFetch::Passed passed);

/// With its mutex locked: what is to become of what was passed of its file.
PageCacheFetch::Passed passed_of(const ManagedFile& managed);

/// The choice of the way is ours.
bool is_free(const ReadIntent& wishes);

/// Whether the kernel is to serve the reads, from its page cache.
bool is_for_page_cache(const ReadIntent& wishes, Reader reader);

/// Whether who reads what is declared of a file of `size` bytes finds it in the page cache, if it
/// was brought there.
bool comes_from_page_cache(int descriptor, const std::string& path, const ReadIntent& wishes,
                           Bytes size);

/// What tells other processes that this one reads the file, by one opening or several, where the
/// choice is ours. Null: they change nothing.
std::shared_ptr<NodeReaders> announced(Registry& state, const FileVersion& version,
                                       const ReadIntent& wishes);

// A program that opens its file again and again may read from several places on, each up to the
// next: what one of these reads is not fetched for the one before, too.

/// One begins at `offset`, which is not in the registry yet.
void part_at(Registry& state, FileId id, Bytes offset, const ManagedFile& own);
/// `file` is of one that was taken up again, by `own`.
void part_from_others(Registry& state, FileId id, ServedFile& file, const ManagedFile& own);

/// With its mutex locked: this becomes of the reads of `managed` from now on.
void follow_as(ManagedFile& managed, Followed followed);
/// The same of what was kept and goes on with it.
void go_on_with(ManagedFile& managed, Followed parked);

/// Nothing reads it any more.
void release(Registry& state, const Followed& followed);

/// What the record of the next way that a file is read ahead in has of those before.
struct WayBefore {
  KernelReads by_kernel;
  std::int64_t openings;
};

/// Of a file that is read ahead in another way from now on: leaves the record of the way until now,
/// or, if that was of no use, returns what goes into the next one.
WayBefore end_way(ManagedFile& managed, Followed followed);

/// It ends, with its record.
void end(Registry& state, const Followed& followed);
/// The same of all that was kept of closed files.
void end_parked(Registry& state);

/// Why nothing is fetched where times_tell() nothing.
constexpr const char* silent_times =
    "its times do not tell of changes: it is in memory, or the like";
/// Why nothing is fetched where nothing is declared, and the page cache keeps what is read.
constexpr const char* read_before = "it is read more than once, and the page cache has it";
/// Why nothing is fetched where descriptors_run_short().
constexpr const char* few_descriptors =
    "the process had taken half of the descriptors that it may have";

}  // namespace forebay::posix
