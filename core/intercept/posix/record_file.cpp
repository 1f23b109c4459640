#include "core/intercept/posix/record_file.hpp"

#include <cstdlib>
#include <cstring>
#include <utility>

#include "core/intercept/record_file.hpp"

namespace forebay::posix {

namespace {

char* report_directory = nullptr;  // Never freed at the end: records are left until the very end.

}  // namespace

void know_report_directory() {
  const char* directory = std::getenv("FOREBAY_REPORT_DIR");
  std::free(std::exchange(report_directory, nullptr));
  if (directory != nullptr && directory[0] != '\0') report_directory = ::strdup(directory);
}

bool leave_record(const std::string& content, const char* suffix) {
  if (report_directory == nullptr) return false;
  // The program must not be disturbed for it, by a word neither.
  (void)put_record(report_directory, content, suffix);
  return true;
}

}  // namespace forebay::posix
