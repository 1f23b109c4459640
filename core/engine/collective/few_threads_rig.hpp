#pragma once

#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>
#include <string>

// What tests share of processes to which the system gives few threads.

namespace forebay {

/// For a child process, whose threads there are so many of: from here on it gets no more than
/// `more`. Root has no such limit, so it becomes somebody else, who owns `directory` then, with all
/// that is in it. Others of that name may take them first. Ends the process with 77 where that
/// cannot be.
inline void allow_threads(int more, int there_are, const std::string& directory = {}) {
  constexpr uid_t nobody = 65534;
  if (::getuid() == 0) {
    if (!directory.empty()) {
      bool given = ::chown(directory.c_str(), nobody, nobody) == 0;
      for (const auto& entry : std::filesystem::recursive_directory_iterator(directory)) {
        given = ::lchown(entry.path().c_str(), nobody, nobody) == 0 && given;
      }
      if (!given) ::_exit(77);
    }
    if (::setuid(nobody) != 0) ::_exit(77);
  }
  const auto most = static_cast<rlim_t>(more == 0 ? 1 : more + there_are);
  const rlimit limit{most, most};
  if (::setrlimit(RLIMIT_NPROC, &limit) != 0) ::_exit(77);
}

}  // namespace forebay
