#pragma once

#include <string>

namespace forebay {

/// The type of the mounted file system that holds `path`, or that would hold it, as the kernel's
/// table of mounts names it: "ext4", "proc", "fuse.sshfs". Empty if that cannot be told.
std::string mounted_type(const std::string& path);

}  // namespace forebay
