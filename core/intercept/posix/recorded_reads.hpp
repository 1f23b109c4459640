#pragma once

#include "core/intercept/posix/managed_files.hpp"
#include "core/storage/file_version.hpp"

namespace forebay::posix {

/// With Inside. What is read by `descriptor`, which was opened just now, is written down.
void record(int descriptor, const FileVersion& version, const char* path, Reader reader);

/// A C stream reads by `descriptor` from now on.
void record_stream(int descriptor);

}  // namespace forebay::posix
