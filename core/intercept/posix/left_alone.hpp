#pragma once

#include <cstddef>
#include <map>
#include <string>

#include "core/intercept/posix/followed.hpp"

namespace forebay::posix {

/// Openings of declared files of which nothing was fetched. One record tells of all of a file: some
/// programs open it for every piece that they read of it. Files beyond the first `most_files` have
/// one together: some programs open millions. Not thread-safe.
class LeftAlone {
 public:
  static constexpr std::size_t most_files = 1024;

  /// One that has ended. Nothing happens if there is nothing to tell of it.
  void add(const Followed& followed);

  /// Leaves the records of those since the last call.
  void write_records();

 private:
  std::map<std::string, Followed> by_path_;
  Followed further_ = {.openings = 0};  ///< Of no path.
};

}  // namespace forebay::posix
