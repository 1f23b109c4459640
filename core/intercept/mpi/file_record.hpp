#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "core/engine/collective/exchange.hpp"
#include "core/intercept/mpi/call_times.hpp"
#include "core/intercept/mpi/kernel_io.hpp"
#include "core/intercept/mpi/settings.hpp"
#include "core/model/counters.hpp"
#include "core/model/hints.hpp"
#include "core/model/stripe_layout.hpp"

namespace forebay {

/// The names of MPI_MODE_* bits, without that, in order of the bits.
std::vector<std::string> amode_names(int amode);

/// What one rank remembers of one opening of one file for the report (docs/formats/report.md).
struct FileRecord {
  std::int64_t opening = 0;  ///< An id, the same on all ranks.
  std::string path;          ///< From the root, without a file system prefix that Forebay knows.
  int amode = 0;             ///< MPI_MODE_* bits.
  Mode mode = Mode::observe;
  int ranks = 0;  ///< That opened the file.
  int nodes = 0;  ///< That they run on; 0: not known.
  CallTimes times;
  Counters counters;
  HintPairs hints;  ///< In force when the file was closed.
  std::vector<std::string> hint_problems;
  StripeLayout layout;
  std::vector<int> aggregators;
  std::vector<std::string> notes;         ///< Of the opening; any rank's are told.
  std::vector<std::string> cache_notes;   ///< What this rank's cache met; any rank's are told.
  std::vector<std::string> engine_notes;  ///< What the lowest rank tells for all.

  /// Counts a call that went to the MPI unchanged.
  void count_passed_through(std::string_view reason);

  /// Counts a call that failed in Forebay's hands: what it was doing, and why. MPI has only an
  /// error class for that.
  void count_failure(const std::string& what);

  void add_storage(const KernelIo& io);

 private:
  friend void write_report(const FileRecord&, Exchange&, const std::string&);
  using Tally = std::map<std::string, std::int64_t, std::less<>>;
  mutable std::mutex mutex_;
  Tally passed_through_;
  Tally failures_;
  KernelIo storage_;
};

/// Combines the records of all ranks and lets rank 0 write the result into `directory`. Collective.
/// Rank 0 says on standard error if it cannot; the program is not disturbed.
void write_report(const FileRecord& record, Exchange& exchange, const std::string& directory);

/// Leaves in `directory`, when a file was opened, that it may have write-behind logs below
/// `log_path` (none: where logs usually are). If its program is killed no record says so.
void write_cached_mark(const FileRecord& record, const std::optional<std::string>& log_path,
                       const std::string& directory);

/// What counters grew by after the record was written.
struct LateCounters {
  std::int64_t drained = 0;
  std::int64_t log_bytes = 0;
  std::int64_t exposed_ns = 0;
};
/// Of the same ones now.
LateCounters late_counters(const Counters& counters);

/// Adds this rank's to what write_report() wrote. Not collective. As there, where it cannot.
void write_late_report(const FileRecord& record, const LateCounters& grown,
                       const std::string& directory);

}  // namespace forebay
