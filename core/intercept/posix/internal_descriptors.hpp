#pragma once

#include <memory>

#include "core/storage/fetch_source.hpp"
#include "core/storage/read_progress.hpp"

namespace forebay::posix {

/// Whether `descriptor` is ours: the program does not know of it and must not close it.
bool is_internal(int descriptor);
void set_internal(int descriptor, bool is_ours);

/// The next one of ours in [first, last]; last + 1 if there is none.
unsigned next_internal(unsigned first, unsigned last);

/// In a child, which has no use for those of its parent.
void close_internal();

/// The same, with descriptors that the program cannot close. -1 is none.
std::unique_ptr<FetchSource> protect(std::unique_ptr<FetchSource> source);
std::shared_ptr<ReadProgress> protect(std::unique_ptr<ReadProgress> progress);

}  // namespace forebay::posix
