#include "core/intercept/posix/record_file.hpp"

#include <cstdlib>
#include <cstring>

#include "core/intercept/record_file.hpp"

namespace forebay::posix {

namespace {

const char* report_directory = nullptr;  // Never freed: records are left until the very end.

}  // namespace

void know_report_directory() {
  const char* directory = std::getenv("FOREBAY_REPORT_DIR");
  if (directory != nullptr && directory[0] != '\0') report_directory = ::strdup(directory);
}

bool leave_record(const std::string& content, const char* suffix) {
  if (report_directory == nullptr) return false;
  // The program must not be disturbed for it, by a word neither.
  (void)put_record(report_directory, content, suffix);
  return true;
}

}  // namespace forebay::posix
