#include "core/intercept/posix/record_file.hpp"

#include <cstdlib>

#include "core/intercept/record_file.hpp"

namespace forebay::posix {

bool leave_record(const std::string& content, const char* suffix) {
  const char* directory = std::getenv("FOREBAY_REPORT_DIR");
  if (directory == nullptr || directory[0] == '\0') return false;
  // The program must not be disturbed for it, by a word neither.
  (void)put_record(directory, content, suffix);
  return true;
}

}  // namespace forebay::posix
