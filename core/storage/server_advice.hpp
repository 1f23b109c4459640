#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "core/model/error.hpp"
#include "core/model/extent.hpp"

namespace forebay {

/// Tells a parallel file system what will be read of a file: posix_fadvise does not reach the
/// servers of Lustre, nor the memory of GPFS, which is not the kernel's page cache. Thread-safe.
class ServerAdvice {
 public:
  virtual ~ServerAdvice() = default;

  /// `extent` of the open file will be read soon, or is not needed any more by this program.
  virtual Status advise(int descriptor, Extent extent, bool is_needed) = 0;
};

/// For a file on `file_system`, named as by file_system_name(), with blocks of `block` bytes
/// (st_blksize). On "lustre" its servers bring what is needed into their memory (llapi_ladvise(3),
/// LU_LADVISE_WILLREAD), and keep it as they like, since other nodes may want it. On "gpfs" the
/// node's page pool brings it, and lets go of it (gpfs_fcntl(), GPFS_MULTIPLE_ACCESS_RANGE). None
/// on others, and where this was built without the headers of that file system, or its library is
/// not there.
std::unique_ptr<ServerAdvice> server_advice_for(std::string_view file_system, Bytes block);

/// The same for an open file, which `link` leads to. Asks nothing of the kernel where there can be
/// none.
std::unique_ptr<ServerAdvice> server_advice_of(int descriptor, const std::string& link);

}  // namespace forebay
