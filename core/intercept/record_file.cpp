#include "core/intercept/record_file.hpp"

#include <unistd.h>
#define XXH_INLINE_ALL  // No library more in every process.
#include <xxhash.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdio>

namespace forebay {

Status put_record(const std::string& directory, const std::string& content, const char* ending) {
  static std::atomic<int> sequence{0};
  std::array<char, 96> name{};
  std::snprintf(name.data(), name.size(), "%ld-%d-%016llx%s", static_cast<long>(getpid()),
                sequence++,
                static_cast<unsigned long long>(XXH64(content.data(), content.size(), 0)), ending);
  const std::string path = directory + "/" + name.data();
  const std::string temporary = directory + "/." + name.data();
  const std::string doing = "cannot write the report " + path;
  std::FILE* file = std::fopen(temporary.c_str(), "we");
  if (file == nullptr) return fail(errno, doing);
  const bool written = std::fwrite(content.data(), 1, content.size(), file) == content.size();
  if (std::fclose(file) != 0 || !written || std::rename(temporary.c_str(), path.c_str()) != 0) {
    const int reason = errno;
    unlink(temporary.c_str());
    return fail(reason, doing);
  }
  return {};
}

}  // namespace forebay
