#pragma once

#include <chrono>
#include <memory>

#include "core/engine/cache/log_trial.hpp"
#include "core/engine/cache/log_writer.hpp"
#include "core/model/extent.hpp"
#include "core/model/hints.hpp"

namespace forebay {

/// What a sync makes sure of.
enum class SyncScope {
  file,  ///< All is in the file, durably.
  node,  ///< All is in the log, durably: a lost node loses it, a crashed one does not.
};

struct CacheOptions {
  CacheFlush flush = CacheFlush::immediate;
  /// Flushing in the background begins when nothing was committed and no access was under way for
  /// so long, or `longest_burst` after the first write: a program that writes a burst and closes
  /// the file is not held up by it.
  std::chrono::milliseconds lull{0};
  std::chrono::milliseconds longest_burst{500};
  SyncScope sync = SyncScope::file;
  bool keep_log = false;      ///< Also after all of it is in the file.
  bool announce = true;       ///< By a sidecar beside the file.
  bool is_protected = false;  ///< Against the loss of the node, as the sidecar says.
  int flush_threads = 0;      ///< Writes to the file under way at a time; 0: two for each server.
  Bytes flush_bytes =
      4 * MiB;            ///< Of one write to the file at most; stripes that are larger are cut.
  int first_server = 0;   ///< Where flushing starts; a different one for each writer.
  LogSettings log{0, 0};  ///< 0: as the capacity and the stripes suggest.
  /// How long a write waits for capacity that others hold before it goes to the file directly.
  std::chrono::milliseconds patience{10'000};
  /// Whether logs like this one are slower than files like its own. Null: all goes to the log.
  std::shared_ptr<LogTrial> trial = nullptr;
};

}  // namespace forebay
