#pragma once

#include <string>

namespace forebay::posix {

/// When the library is loaded: later, another thread of the program may be changing its
/// environment.
void know_report_directory();

/// Leaves a record in the directory that FOREBAY_REPORT_DIR named then, if it named one, as
/// `<pid>-<sequence>-<xxh64 of the content><suffix>`. It appears whole or not at all.
/// False: it names none.
bool leave_record(const std::string& content, const char* suffix);

}  // namespace forebay::posix
