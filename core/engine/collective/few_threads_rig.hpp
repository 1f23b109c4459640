#pragma once

#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "core/storage/child_rig.hpp"

// What tests share that let child processes have few threads.

namespace forebay {

/// For a child process, whose threads there are so many of: from here on it gets no more than
/// `more`. Root has no such limit, so it becomes somebody else, who owns `directory` then, with all
/// that is in it. Others of that name may take them first. Ends the process with may_not
/// where that cannot be.
inline void allow_threads(int more, int there_are, const std::string& directory = {}) {
  constexpr uid_t nobody = 65534;
  if (::getuid() == 0) {
    if (!directory.empty()) {
      bool given = ::chown(directory.c_str(), nobody, nobody) == 0;
      for (const auto& entry : std::filesystem::recursive_directory_iterator(directory)) {
        given = ::lchown(entry.path().c_str(), nobody, nobody) == 0 && given;
      }
      if (!given) ::_exit(may_not);
    }
    if (::setuid(nobody) != 0) ::_exit(may_not);
  }
  const auto most = static_cast<rlim_t>(more == 0 ? 1 : more + there_are);
  const rlimit limit{most, most};
  if (::setrlimit(RLIMIT_NPROC, &limit) != 0) ::_exit(may_not);
}

}  // namespace forebay
