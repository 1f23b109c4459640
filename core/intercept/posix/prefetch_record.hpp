#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/engine/prefetch/prefetch_figures.hpp"

namespace forebay::posix {

/// Leaves what reading the file `path` ahead did, in so many openings, in the directory of records,
/// if there is one (docs/formats/report.md). Nothing is told of a failure: the program goes on all
/// the same.
void write_prefetch_record(const std::string& path, std::int64_t openings,
                           const PrefetchFigures& figures);

/// The same of openings that were left to the kernel, of files that are told of together.
void write_left_alone_record(std::int64_t openings, const KernelReads& by_kernel,
                             const std::string& why);

/// The same of what is wrong with what is declared of the file `path`, a sentence each. Without a
/// directory of records it is told on the error stream.
void write_mistakes_record(const std::string& path, const std::vector<std::string>& mistakes);

/// The same of what this process does for no file any more, and why.
void write_gave_up_record(const std::string& why);

}  // namespace forebay::posix
