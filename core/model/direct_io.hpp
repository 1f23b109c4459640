#pragma once

#include "core/model/extent.hpp"

namespace forebay {

/// Addresses, offsets and lengths of O_DIRECT transfers are multiples of this everywhere: it is the
/// largest logical block size of devices in use (open(2), "O_DIRECT"), and a page of most machines.
constexpr Bytes direct_alignment = 4 * KiB;

/// Of the usual architectures with pages of 4 KiB. A device takes a request apart where memory is
/// not in one piece (Linux: at 128 pieces, which are 512 KiB of usual pages).
constexpr Bytes large_page = 2 * MiB;

}  // namespace forebay
