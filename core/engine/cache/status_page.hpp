#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>

#include "core/engine/cache/log_store.hpp"
#include "core/model/error.hpp"
#include "core/model/extent.hpp"

// docs/formats/write-behind-log.md, "Status"

namespace forebay {

/// How far a log's writer has got, for who watches it from outside.
struct CacheProgress {
  Bytes absorbed = 0;  ///< Bytes that went to the log.
  Bytes drained = 0;   ///< Bytes that went from it to the file.
  Bytes dirty = 0;     ///< Bytes that are only in the log.
  bool draining = false;
  std::int64_t updated_unix_ms = 0;

  bool operator==(const CacheProgress&) const = default;
};

/// The file "status" in a log's store, rewritten in place a few times a second. Thread-safe. It is
/// of no use to anybody but the curious, so nothing that goes wrong with it is an error.
class StatusPage {
 public:
  explicit StatusPage(LogStore& store);

  /// `now`: also if it was written just before, or says nothing new.
  void publish(CacheProgress progress, bool now);

  /// Errors: no_such_file; unsupported; io, also where it was about to be rewritten: try again.
  static Result<CacheProgress> read(LogStore& store);

 private:
  using Clock = std::chrono::steady_clock;
  std::mutex mutex_;
  std::unique_ptr<StorageFile> file_;  ///< Guarded by mutex_. Null: there is none.
  Clock::time_point published_;
  CacheProgress last_;  ///< As published then, without the time.
};

}  // namespace forebay
