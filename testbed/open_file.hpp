#pragma once

#include <dirent.h>

#include <memory>
#include <mutex>
#include <string>

#include "testbed/file_descriptor.hpp"
#include "testbed/fuse_api.hpp"
#include "testbed/node_table.hpp"

namespace forebay::testbed {

/// What a file handle of the kernel stands for: a descriptor of the backing file; for the counters
/// file its content when it was opened.
struct OpenFile {
  FileDescriptor fd;
  std::string content;
};

/// What a directory handle stands for. No stream: the control directory, which lists nothing.
struct OpenDirectory {
  explicit OpenDirectory(DIR* directory) : stream(directory) {}
  ~OpenDirectory() {
    if (stream != nullptr) ::closedir(stream);
  }
  OpenDirectory(const OpenDirectory&) = delete;
  OpenDirectory& operator=(const OpenDirectory&) = delete;

  std::mutex mutex;  // the kernel reads a directory from several threads at once
  DIR* stream;
};

template <typename Handle>
Handle& handle_of(const fuse_file_info* info) {
  return *reinterpret_cast<Handle*>(info->fh);
}

/// Hands `handle` to the kernel, which gives it back with the last release.
template <typename Handle>
std::uint64_t to_kernel(std::unique_ptr<Handle> handle) {
  return reinterpret_cast<std::uint64_t>(handle.release());
}

}  // namespace forebay::testbed
