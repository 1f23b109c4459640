#pragma once

#include "core/model/extent.hpp"

namespace forebay {

/// Who tells what the page cache has of a file.
enum class ResidenceTold {
  by_count,  ///< cachestat(2): Linux 6.5; since 6.14 for who owns the file or may write it.
  by_pages,  ///< mincore(2): since Linux 5.2 for the same.
  nothing,   ///< Nobody.
};

/// For who reads `descriptor`.
ResidenceTold residence_told(int descriptor);

/// Bytes of `extent` in the page cache, in whole pages; 0 if nobody tells, or on an error.
Bytes resident_bytes(int descriptor, Extent extent, ResidenceTold told);

}  // namespace forebay
