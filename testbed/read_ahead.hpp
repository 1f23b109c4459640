#pragma once

#include <string>

#include "core/model/error.hpp"
#include "core/model/extent.hpp"

namespace forebay::testbed {

/// How much the kernel reads ahead of the readers of a mounted file system, at most: what
/// /sys/class/bdi/MAJOR:MINOR/read_ahead_kb says of its backing device. The kernel's default is
/// 128 KiB.
class ReadAhead {
 public:
  /// Of what is mounted on `mount`. Asks the file system nothing, which may be the caller's own.
  static Result<ReadAhead> of(const std::string& mount);

  /// What it is now: whoever is root may have changed it since.
  Result<Bytes> bytes() const;

  /// Needs root. `bytes` is a multiple of 1 KiB; the kernel rounds it down to whole pages.
  Status set(Bytes bytes) const;

 private:
  explicit ReadAhead(std::string path) : path_(std::move(path)) {}

  std::string path_;
};

}  // namespace forebay::testbed
