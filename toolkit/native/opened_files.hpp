#pragma once

#include <functional>
#include <memory>
#include <string>

#include "core/model/error.hpp"
#include "core/storage/descriptor.hpp"
#include "core/storage/file_version.hpp"

namespace forebay {

/// Regular files that are opened on this machine by whomever, on file systems that lie on storage
/// (fanotify(7)): events of the page cache name no file. One thread's.
class OpenedFiles {
 public:
  /// Error: not allowed (it takes root).
  static Result<std::unique_ptr<OpenedFiles>> begin();

  struct Opened {
    int descriptor;  ///< Ours, of the same file, for reading; closed afterwards.
    std::string path;
    FileVersion version;
    bool was_written;  ///< It was not opened now, but closed by one who could write to it.
  };
  /// Calls `seen` for each since the last call.
  void take(const std::function<void(const Opened&)>& seen);

 private:
  explicit OpenedFiles(Descriptor group) : group_(std::move(group)) {}

  const Descriptor group_;
};

}  // namespace forebay
