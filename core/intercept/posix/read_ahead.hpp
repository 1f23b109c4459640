#pragma once

#include <map>
#include <memory>

#include "core/engine/prefetch/adviser.hpp"
#include "core/engine/prefetch/served_file.hpp"
#include "core/intercept/posix/declared_reads.hpp"
#include "core/intercept/posix/managed_files.hpp"
#include "core/intercept/posix/registry.hpp"
#include "core/storage/file_version.hpp"

namespace forebay::posix {

// What is read ahead of the program, from the opening of a file to its end. All with Inside.

/// `descriptor` was opened: what `sections` declare of it is read ahead from now on.
void manage(int descriptor, const FileVersion& version, const char* path,
            const DeclaredReads::Sections& sections, Reader reader);

/// The first read by `descriptor`, of a file that was open before, is about to begin at `offset`.
/// False: there is nothing that it could decide(). A file server is asked only if there is.
bool may_decide(int descriptor, Bytes offset);

/// It may, and does. `version`: of the file, looked at since the program asked.
void decide(int descriptor, const FileVersion& version, Bytes offset);

/// What a child has for each open file description of its parent.
using Inherited = std::map<const ManagedFile*, ManagedFile*>;

/// In a child, before anything else: `descriptor` stands for what `before` is in the parent, whose
/// registry was locked then. What is fetched for the child is decided by its reads.
void inherit(Registry& own, int descriptor, const ManagedFile& before, Inherited& inherited);

/// Another process reads the file of `descriptor`, too, which is about to be read at `offset`: what
/// is declared is fetched together with that one from now on, into memory that both see; or, where
/// that cannot be, into the page cache, if reads come from there.
void share(int descriptor, Bytes offset);

/// What is declared of the file of `descriptor`, which was read at `offset`, is not fetched
/// together with other processes as before, as `served` says: but together with others in another
/// way; or, where that is not said or cannot be, into the page cache, or if reads do not come from
/// there, into memory of this process. If what is declared is not what is read, that gets what a
/// pattern foresees.
void go_on(int descriptor, Bytes offset, const ServedFile::Served& served);

/// What is read of the file of `descriptor`, lately at `offset`, was read before, as `earlier`
/// shows: the rest is brought to the page cache, if reads come from there, and stays.
void read_again(int descriptor, Bytes offset, EarlierReads& earlier);

/// Nothing happens if it is not listed.
void close_listed(int descriptor);

/// Somebody in this process may write to it from now on. Whether it was read ahead until now.
bool stop_serving(FileId id);

/// With the registry locked: whether a mapping shows it.
bool is_mapped(const Registry& state, const std::shared_ptr<AdvisedFile>& file);
/// What is read ahead of them has ended.
void forget_all_mappings(Registry& state);

/// With the registry locked. What is read of the file will be read from the page cache: what is
/// declared of it, from `offset` on, is brought there. Null: nothing is declared, or nothing can be
/// done.
std::shared_ptr<AdvisedFile> move_to_page_cache(Registry& state, ManagedFile& managed,
                                                int descriptor, Bytes offset = 0);

}  // namespace forebay::posix
