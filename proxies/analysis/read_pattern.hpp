#pragma once

#include <cstdint>
#include <limits>
#include <vector>

namespace analysis {

struct Read {
  std::uint64_t offset = 0;  ///< In the file, bytes.
  std::uint64_t length = 0;
};

/// The reads of a ROOT analysis as [MERCURY] describes them: offsets that rise with gaps of all
/// sizes, sometimes go back a little, and never overlap.
struct PatternShape {
  static constexpr std::uint64_t all_that_is_left = std::numeric_limits<std::uint64_t>::max();

  std::uint64_t file_bytes = 1280ULL << 20U;
  std::uint64_t reads = 2627;
  std::uint64_t mean_bytes = 247'000;  ///< Of a read; from a quarter to seven quarters of it.
  std::uint64_t mean_gap_bytes = all_that_is_left;  ///< Before a read; most are small, few large.
  std::uint64_t backward = 97;  ///< Reads that lie before the one that came before them.
  std::uint64_t seed = 1;

  /// Whether such reads fit the file, and so many of them can go back.
  bool is_possible() const {
    return reads > 0 && mean_bytes > 0 && reads <= file_bytes / mean_bytes &&
           backward <= reads / 2 &&
           (mean_gap_bytes == all_that_is_left || mean_gap_bytes <= left_bytes() / reads);
  }

  /// What is not read.
  std::uint64_t left_bytes() const { return file_bytes - reads * mean_bytes; }
  std::uint64_t gap_bytes() const {
    return mean_gap_bytes == all_that_is_left ? left_bytes() : reads * mean_gap_bytes;
  }
};

/// The reads of `shape`, which is possible, in their order. The same for the same shape.
std::vector<Read> read_pattern(const PatternShape& shape);

}  // namespace analysis
