#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/model/hints.hpp"
#include "core/model/stripe_layout.hpp"
#include "core/plan/file_domains.hpp"
#include "core/plan/schedule.hpp"

namespace forebay {

/// The domains of a file of which only the layout is known. A hint for the buffer makes windows of
/// that size, but of one unit at least.
FileDomains domains_for(const StripeLayout& layout, const Hints& hints, int aggregators);

/// What of a file is one rank's at a time in a cache: no more than `unit`, which it divides.
Bytes granule_of(Bytes unit);

/// The ranks that serve the classes of fitted domains: in order, so that the bytes of a rank stay
/// with it or, with fewer aggregators, go to a rank close by.
std::vector<int> fitted_ranks(int aggregators, int ranks);

/// `domains` with another unit, a multiple of theirs, such that at least three quarters of the
/// bytes of `parts` are in the domain of the rank whose they are, or of the one that serves its
/// neighbours (fitted_ranks). None where there is no such unit up to `most_unit`: parts of several
/// pieces, of unequal lengths or distances, or too long ones. Windows are as long as before, but of
/// one unit at least.
/// Worked example: 8 ranks write 128 KiB each, one behind the other from 6 KiB on, through 8
/// aggregators and units of 64 KiB. Of what a rank writes, an eighth is in its own domain; with
/// units of 128 KiB, 95 %.
std::optional<FileDomains> fitted_domains(const std::vector<RankPart>& parts, FileDomains domains,
                                          Bytes most_unit);

}  // namespace forebay
