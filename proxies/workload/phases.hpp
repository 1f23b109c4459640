// The life of a proxy: write phases with computation between them, then read phases that check
// every byte. A program says how its data lies in memory and file; this says when what is done.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "proxies/workload/options.hpp"
#include "proxies/workload/pattern_data.hpp"

namespace workload {

/// One way of laying the data of all ranks into a file.
class AccessPattern {
 public:
  virtual ~AccessPattern() = default;

  /// Payload of one file over all ranks.
  virtual std::uint64_t bytes() const = 0;

  /// All memory of this rank that takes part, with what lies between the pieces.
  virtual std::span<std::byte> memory() = 0;

  /// Puts this rank's share of `data` into memory, by its position in the file.
  virtual void fill(const PatternData& data) = 0;

  /// Opens, writes, closes. Collective. Returns the seconds this rank spent in data calls.
  virtual double write(const std::string& path) = 0;

  /// Opens, reads, closes. Collective. Returns the seconds this rank spent in data calls.
  virtual double read(const std::string& path) = 0;

  /// Compares this rank's memory, all poison before the read, with what `data` says.
  virtual std::optional<Mismatch> check(const PatternData& data) = 0;
};

/// Runs all phases that `options` ask for. Collective. Returns the exit status: 0, or 1 if a byte
/// that was read is wrong.
int run_phases(const Options& options, AccessPattern& pattern);

/// Waits as long as the program would compute between two phases.
void compute(const Options& options);

}  // namespace workload
