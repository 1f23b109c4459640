#pragma once

#include <cstdint>
#include <string>

#include "core/model/error.hpp"

namespace forebay {

/// Which file is meant: its path without symbolic links, and what the kernel tells files apart by.
/// A file that was replaced has the path but not the inode; a file that was moved the reverse.
struct FileIdentity {
  std::string path;
  std::uint64_t device = 0;  ///< st_dev
  std::uint64_t inode = 0;   ///< st_ino

  bool operator==(const FileIdentity&) const = default;
};

/// The identity of the file that `path` names now. Errors: no_such_file, access, ...
Result<FileIdentity> identify(const std::string& path);

}  // namespace forebay
