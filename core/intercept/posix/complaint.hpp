#pragma once

#include <string>

namespace forebay::posix {

/// What is the program's error stream is seen when the library is loaded.
void know_error_stream();

/// Writes a line about `what` to it. Not where something else has its number by now: a program that
/// closes it, or is started without, may have a file of its own there.
void complain(const std::string& what);

}  // namespace forebay::posix
