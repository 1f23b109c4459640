#include "core/intercept/posix/record_file.hpp"

#include <unistd.h>
#define XXH_INLINE_ALL  // No library more in every process.
#include <xxhash.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <system_error>

namespace forebay::posix {

void leave_record(const std::string& content, const char* suffix) {
  const char* directory = std::getenv("FOREBAY_REPORT_DIR");
  if (directory == nullptr || directory[0] == '\0') return;
  static std::atomic<int> sequence{0};
  std::array<char, 64> name{};
  std::snprintf(name.data(), name.size(), "%d-%d-%016llx%s", ::getpid(), sequence++,
                static_cast<unsigned long long>(XXH64(content.data(), content.size(), 0)), suffix);
  const std::filesystem::path place(directory);
  const auto hidden = place / ("." + std::string(name.data()));
  std::ofstream out(hidden, std::ios::binary);
  out << content;
  out.close();
  std::error_code failed;
  if (out) std::filesystem::rename(hidden, place / name.data(), failed);
  if (!out || failed) std::filesystem::remove(hidden, failed);
}

}  // namespace forebay::posix
