#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "core/engine/cache/log_store.hpp"
#include "core/engine/redundancy/parity_reader.hpp"
#include "core/model/error.hpp"

namespace forebay {

/// A log that stripes name, and what they know of it.
struct ProtectedLog {
  LogIdentity identity;
  std::uint64_t flushed = 0;        ///< Records up to this one are durable in the file.
  std::uint64_t last_sequence = 0;  ///< Records up to this one are in stripes.
  Bytes bytes = 0;                  ///< That a rebuilt log would have.

  /// Nothing of it is missing from the file.
  bool clean() const { return bytes == 0; }
};

/// Records of `log` up to `sequence` were durable in the file, as its notice says: stripes need not
/// know of a flush that ranks did not agree on, after which others may have written there.
void tell_flushed(std::span<ParityContents> parity, const std::string& log, std::uint64_t sequence);

/// By name.
std::map<std::string, ProtectedLog> protected_logs(std::span<const ParityContents> parity);

/// Stores by the names of their logs; they outlive what uses them.
using StoresByName = std::map<std::string, LogStore*>;

struct RebuildReport {
  int stripes = 0;     ///< That were solved.
  int unfinished = 0;  ///< That were not, since the program died before all their pieces were
                       ///< there: nobody was told that they protect.
  Bytes bytes = 0;     ///< Written to logs.
  /// What of the lost logs could not be got back, and why, for a person. Empty: everything.
  std::vector<std::string> missing;
};

/// Told of bytes that were rebuilt since it was told last.
using RebuildProgress = std::function<void(Bytes)>;

/// Makes lost logs again, in the empty stores `lost`, from all parity logs of their groups that are
/// left and the logs of these groups that are left. Each comes out as far as it was protected,
/// byte by byte, with the flush mark that was known; it is durable on return. A log that is damaged
/// is among both: what is sound of it counts as left, stripe by stripe, and it is made again as a
/// whole. Errors: those of `lost`. What else fails is in the report: a log then lacks the records
/// of those stripes.
Result<RebuildReport> rebuild(std::span<const ParityContents> parity, const StoresByName& left,
                              const StoresByName& lost, const RebuildProgress& progress = {});

}  // namespace forebay
