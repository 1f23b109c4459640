#pragma once

#include <sys/uio.h>

#include <algorithm>
#include <span>
#include <vector>

#include "core/model/extent.hpp"

namespace forebay {

/// The part of `pieces` that starts `from` bytes into them and has `length` bytes, or as many as
/// there are.
inline std::vector<iovec> slice(std::span<const iovec> pieces, Bytes from, Bytes length) {
  std::vector<iovec> part;
  for (const iovec& piece : pieces) {
    const auto size = static_cast<Bytes>(piece.iov_len);
    if (from < size && length > 0) {
      const Bytes step = std::min(size - from, length);
      part.push_back({static_cast<char*>(piece.iov_base) + from, static_cast<std::size_t>(step)});
      length -= step;
      from = 0;
    } else {
      from -= std::min(from, size);
    }
  }
  return part;
}

}  // namespace forebay
