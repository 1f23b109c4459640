#include "core/intercept/record_file.hpp"

#include <fcntl.h>
#include <unistd.h>
#define XXH_INLINE_ALL  // No library more in every process.
#include <xxhash.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <string_view>

#include "core/storage/file_limit.hpp"

namespace forebay {
namespace {

bool write_all(int file, std::string_view content) {
  while (!content.empty()) {
    const ssize_t moved = ::write(file, content.data(), content.size());
    if (moved < 0 && errno == EINTR) continue;
    if (moved <= 0) return false;
    content.remove_prefix(static_cast<std::size_t>(moved));
  }
  return true;
}

}  // namespace

Status put_record(const std::string& directory, const std::string& content, const char* ending) {
  static std::atomic<int> sequence{0};
  std::array<char, 96> name{};
  std::snprintf(name.data(), name.size(), "%ld-%d-%016llx%s", static_cast<long>(getpid()),
                sequence++,
                static_cast<unsigned long long>(XXH64(content.data(), content.size(), 0)), ending);
  const std::string path = directory + "/" + name.data();
  const std::string temporary = directory + "/." + name.data();
  const std::string doing = "cannot write the report " + path;
  if (!may_make_file(static_cast<Bytes>(content.size()))) return fail(EFBIG, doing);
  // By no stream: a signal handler may close a file while the program below it allocates.
  const int file = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (file < 0) return fail(errno, doing);
  const bool written = write_all(file, content);
  const int reason_of_writing = errno;
  const bool closed = ::close(file) == 0;
  if (!written || !closed || ::rename(temporary.c_str(), path.c_str()) != 0) {
    const int reason = written ? errno : reason_of_writing;
    ::unlink(temporary.c_str());
    return fail(reason, doing);
  }
  return {};
}

}  // namespace forebay
