#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "core/engine/cache/log_contents.hpp"
#include "core/model/error.hpp"
#include "core/storage/file.hpp"

namespace forebay {

/// What is to be done with records behind the last commit of a log.
enum class Incomplete {
  drop,    ///< They are left out.
  replay,  ///< They go to the file, as far as they are there.
};

struct ReplayChoices {
  Incomplete incomplete = Incomplete::drop;
  /// Replays what is intact although something that was promised is not; else that is an error.
  bool skip_damage = false;
  int threads = 0;  ///< Writes under way at a time; 0: two for each server.
};

/// Told how many bytes of how many went to the file so far. Called by several threads in turn.
using ReplayProgress = std::function<void(Bytes done, Bytes all)>;

struct ReplayReport {
  std::int64_t records = 0;  ///< Data records that were replayed.
  Bytes record_bytes = 0;    ///< What they hold.
  Bytes written = 0;         ///< Bytes that went to the file: without what newer records cover.
  int truncations = 0;       ///< Of the file itself.
};

/// Puts what logs of one file hold into the file, in the order of epoch, rank and sequence number,
/// and makes it durable. Doing it again does the same. The logs are not changed. Errors: io (with
/// what is damaged, where that is not to be skipped; then the file was not touched), and those of
/// the file.
Result<ReplayReport> replay(StorageFile& file, std::span<const LogContents> logs,
                            const ReplayChoices& choices, const ReplayProgress& progress = {});

}  // namespace forebay
