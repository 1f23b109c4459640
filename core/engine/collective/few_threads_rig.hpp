#pragma once

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <string>

// What tests share that let child processes have few threads, or try something else in them.

namespace forebay {

constexpr int cannot_be_tried = 77;

/// What `work()`, from 0 to 255, gives in a child process; -1 if that ends by a signal.
template <typename Work>
int in_child(Work work) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(work());
  int status = 0;
  if (child < 0 || ::waitpid(child, &status, 0) != child || !WIFEXITED(status)) return -1;
  return WEXITSTATUS(status);
}

/// For a child process, whose threads there are so many of: from here on it gets no more than
/// `more`. Root has no such limit, so it becomes somebody else, who owns `directory` then, with all
/// that is in it. Others of that name may take them first. Ends the process with cannot_be_tried
/// where that cannot be.
inline void allow_threads(int more, int there_are, const std::string& directory = {}) {
  constexpr uid_t nobody = 65534;
  if (::getuid() == 0) {
    if (!directory.empty()) {
      bool given = ::chown(directory.c_str(), nobody, nobody) == 0;
      for (const auto& entry : std::filesystem::recursive_directory_iterator(directory)) {
        given = ::lchown(entry.path().c_str(), nobody, nobody) == 0 && given;
      }
      if (!given) ::_exit(cannot_be_tried);
    }
    if (::setuid(nobody) != 0) ::_exit(cannot_be_tried);
  }
  const auto most = static_cast<rlim_t>(more == 0 ? 1 : more + there_are);
  const rlimit limit{most, most};
  if (::setrlimit(RLIMIT_NPROC, &limit) != 0) ::_exit(cannot_be_tried);
}

}  // namespace forebay
