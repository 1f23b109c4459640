#pragma once

#include <cstdint>

#include "core/model/extent.hpp"

namespace forebay {

/// Whether a read of `bytes` that took `ns`, 0 if it waited for nothing, was a copy: those go at
/// several GB/s, and no device answers in so short a time.
bool is_from_memory(Bytes bytes, std::int64_t ns);

/// Whether files of a device are in the page cache, where the kernel does not tell (it tells who
/// owns a file or may write it, since Linux 5.2): now and then a piece is left to the program's own
/// read, and how long the kernel takes for that shows it. Three such reads in a row at the speed of
/// memory, and there is nothing to fetch; a slow one, and all is fetched but a piece after 16,
/// then 32, up to 256.
class CacheTrial {
 public:
  /// Whether the next piece is left to the kernel; `is_first`: of an opening.
  bool leaves(bool is_first);
  /// The kernel took `ns` for `bytes` of what was left, as is_from_memory() has it.
  void took(Bytes bytes, std::int64_t ns);
  /// What is read seems to be in the page cache.
  bool is_warm() const;

 private:
  int fast_ = 0;  ///< Reads in a row.
  std::int64_t interval_ = 16;
  std::int64_t until_next_ = 0;  ///< Pieces.
};

}  // namespace forebay
