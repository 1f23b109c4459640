#pragma once

#include "core/engine/prefetch/prefetched_file.hpp"

namespace forebay::posix {

/// Leaves what reading `file` ahead did in the directory of records, if there is one
/// (docs/formats/report.md). Nothing is told of a failure: the program goes on all the same.
void write_prefetch_record(const PrefetchedFile& file);

}  // namespace forebay::posix
