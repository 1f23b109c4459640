#pragma once

#include <string>

#include "core/model/extent.hpp"
#include "core/model/read_trace.hpp"

namespace forebay::posix {

/// Leaves a record of what was read of one opening of a file (docs/formats/report.md). `path` is
/// absolute; `size` is that of the file, in bytes.
void write_trace_record(const std::string& path, Bytes size, const ReadTrace& trace);

}  // namespace forebay::posix
