#pragma once

#include <string>

#include "core/model/error.hpp"

// docs/formats/report.md. Its source is compiled into each library that writes reports.

namespace forebay {

/// Leaves a record in `directory` as `<pid>-<sequence>-<xxh64 of the content><ending>`, under a
/// temporary name first: a reader meets whole records only. Errors: those of the file system.
Status put_record(const std::string& directory, const std::string& content, const char* ending);

}  // namespace forebay
