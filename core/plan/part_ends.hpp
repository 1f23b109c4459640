#pragma once

#include <vector>

#include "core/model/extent.hpp"
#include "core/plan/schedule.hpp"

namespace forebay {

/// The whole granules in a part that is one piece of the file; empty if there are none.
/// Worked example, granules of 512 KiB: of [6 KiB, 5 MiB + 6 KiB) they are [512 KiB, 5 MiB).
Extent whole_granules_in(const RankPart& part, Bytes granule);

/// What is left of such a part in front of them and behind, as a part of its own: its data are
/// those of the first end and then those of the last.
RankPart ends_of(const RankPart& part, Bytes granule);

/// Whether each of these parts is one piece, and `least` of their bytes are in whole granules.
bool mostly_whole(const std::vector<RankPart>& parts, Bytes granule, double least);

}  // namespace forebay
