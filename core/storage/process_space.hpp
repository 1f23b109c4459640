#pragma once

#include <sys/stat.h>

#include <cstdint>

namespace forebay {

/// The space of process numbers of this process, by the inode of its namespace: containers of one
/// host may have several, in which a number means other processes. 0: it cannot be told.
/// [namespaces(7), pid_namespaces(7)]
inline std::uint64_t process_space() {
  struct stat space = {};
  return ::stat("/proc/self/ns/pid", &space) == 0 ? space.st_ino : 0;
}

}  // namespace forebay
