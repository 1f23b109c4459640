#pragma once

#include <string>

#include "core/model/error.hpp"

namespace forebay {

/// All that a file holds. Iterators over a stream's buffer throw where a read fails (of a
/// directory, or of a process in /proc that has ended meanwhile), which ends the program; this does
/// not.
Result<std::string> text_of(const std::string& path);

}  // namespace forebay
