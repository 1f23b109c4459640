#pragma once

#include <map>
#include <string>

#include "core/engine/prefetch/prefetch_figures.hpp"
#include "core/intercept/posix/followed.hpp"

namespace forebay::posix {

/// Openings of declared files of which nothing was fetched. One record tells of all of a file: some
/// programs open it for every piece that they read of it. Not thread-safe.
class LeftAlone {
 public:
  /// One that has ended. Nothing happens if there is nothing to tell of it.
  void add(const Followed& followed);

  /// Leaves the records of those since the last call.
  void write_records();

 private:
  struct File {
    KernelReads by_kernel;
    std::string why;  ///< The first of the reasons.
  };

  std::map<std::string, File> by_path_;
};

}  // namespace forebay::posix
