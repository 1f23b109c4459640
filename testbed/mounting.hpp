#pragma once

#include <functional>
#include <string>

#include "core/model/error.hpp"
#include "testbed/file_system.hpp"

namespace forebay::testbed {

/// Both paths made absolute; or why they cannot serve: not directories, one inside the other (the
/// file system would wait for itself), or something of this kind is mounted already.
Status check_directories(std::string& backing, std::string& mount);

/// Mounts the file system and serves it until it is unmounted (fusermount3 -u) or a signal (INT,
/// TERM, HUP) ends it; then it is not mounted any more. `mounted` is called when the kernel has the
/// mount; requests are answered from then on. The state file, if one is named, is there before and
/// says `"running": false` in the end.
Status serve(const FileSystemParameters& parameters, const std::string& state_path,
             const std::function<void()>& mounted);

/// Runs `serve_foreground` in a new session in the background. Returns in the calling process,
/// when the mount answers or has failed: the exit status. `serve_foreground(mounted)` runs in the
/// background process, whose exit status it returns, and calls `mounted` once.
int in_background(const std::string& mount,
                  const std::function<int(const std::function<void()>&)>& serve_foreground);

}  // namespace forebay::testbed
