// What a proxy tells: one line a phase, and a verdict on the bytes that were read. Rank 0 prints.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <optional>
#include <string>

#include "proxies/workload/pattern_data.hpp"

namespace workload {

/// How long one rank took for a phase.
struct PhaseTime {
  double seconds = 0;       ///< From before the file is opened until it is closed.
  double data_seconds = 0;  ///< Inside data calls only.
};

/// Prints the first line, which says what is about to happen.
void report_start(const std::string& text);

/// Prints the phase's size and rates; the slowest rank counts. Collective. `bytes` is over all
/// ranks. Returns the time of the slowest rank.
PhaseTime report_phase(const std::string& phase, const std::string& path, std::uint64_t bytes,
                       PhaseTime time);

/// Tells whether all ranks found `path` to be right; the lowest rank that did not, says where it is
/// wrong. Collective; the same answer on all ranks.
bool report_verdict(const std::string& path, std::uint64_t bytes,
                    const std::optional<Mismatch>& mismatch);

}  // namespace workload
