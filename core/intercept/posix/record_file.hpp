#pragma once

#include <string>

namespace forebay::posix {

/// Leaves a record in the directory that FOREBAY_REPORT_DIR names, if it names one, as
/// `<pid>-<sequence>-<xxh64 of the content><suffix>`. It appears whole or not at all.
/// False: it names none.
bool leave_record(const std::string& content, const char* suffix);

}  // namespace forebay::posix
