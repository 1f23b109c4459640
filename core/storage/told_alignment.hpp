#pragma once

#include <optional>

#include "core/model/direct_io.hpp"
#include "core/model/extent.hpp"

namespace forebay {

/// What addresses, offsets and lengths of direct transfers of this file are multiples of, as the
/// kernel says (statx, STATX_DIOALIGN, Linux 6.1); 0: it makes none, also where it lets the file be
/// opened for them, and goes by the page cache instead. None: the kernel or the file system does
/// not say, as those of a network do not.
std::optional<Bytes> told_direct_alignment(int descriptor);

/// Whether our transfers, which are multiples of direct_alignment, can be direct at this one.
constexpr bool suits_direct_io(Bytes alignment) {
  return alignment > 0 && alignment <= direct_alignment;
}

}  // namespace forebay
