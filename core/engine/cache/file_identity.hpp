#pragma once

#include <cstdint>
#include <string>

#include "core/model/error.hpp"

namespace forebay {

/// Which file is meant: its path without symbolic links, and what the kernel tells files apart by.
/// A file that was replaced has the path but not the inode; a file that was moved the reverse. File
/// systems give the inode of a file that is gone to a new one, which was made later.
struct FileIdentity {
  std::string path;
  std::uint64_t device = 0;       ///< st_dev
  std::uint64_t inode = 0;        ///< st_ino
  std::int64_t made_unix_ns = 0;  ///< stx_btime; 0: the file system does not tell.

  bool operator==(const FileIdentity&) const = default;
};

/// Whether both are one file, on any node: device numbers of network file systems change from mount
/// to mount; inodes do not. The path is not looked at.
bool same_file(const FileIdentity& a, const FileIdentity& b);

/// The identity of the file that `path` names now. Errors: no_such_file, access, ...
Result<FileIdentity> identify(const std::string& path);

}  // namespace forebay
