#pragma once

#include "core/storage/file_version.hpp"

namespace forebay::posix {

/// With Inside. What is read by `descriptor`, which was opened just now, is written down.
void record(int descriptor, const FileVersion& version, const char* path);

}  // namespace forebay::posix
