#pragma once

#include <memory>
#include <string>

#include "core/storage/fetch_source.hpp"
#include "core/storage/read_progress.hpp"

namespace forebay::posix {

/// Whether `descriptor` is ours: the program does not know of it and must not close it.
bool is_internal(int descriptor);
void set_internal(int descriptor, bool is_ours);

/// The next one of ours in [first, last]; last + 1 if there is none.
unsigned next_internal(unsigned first, unsigned last);

/// There are any.
bool has_internal();

/// In a child, which has no use for those of its parent.
void close_internal();

// A process that closes any descriptor of a file loses all of its record locks on it, whichever
// descriptor it set them by (fcntl(2), F_SETLK): what is ours must stay open, then.

/// The program is about to set a record lock.
void takes_record_lock();
/// What had to stay open, and need not any more, is closed. Like what follows it takes all of that
/// away meanwhile: one thread at a time.
void close_unlocked();
/// What has to stay open does so through an `exec`, which would lose the locks.
void keep_through_exec();
/// The program puts something of its own on the number of what had to stay open.
void leave_to_program(int descriptor);

/// As open_fetch_source(), with a descriptor that the program cannot close. Error: also where the
/// program may have record locks on the file.
Result<std::unique_ptr<FetchSource>> open_protected_source(int descriptor, const std::string& path,
                                                           Through way = Through::direct);
/// The same, with a descriptor that the program cannot close. -1 is none.
std::shared_ptr<ReadProgress> protect(std::unique_ptr<ReadProgress> progress);

}  // namespace forebay::posix
