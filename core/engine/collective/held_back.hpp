#pragma once

#include "core/model/error.hpp"

namespace forebay {

/// What a file that was closed early has still to bring to the file (forebay_cache_flush=deferred).
/// Threads go on bringing it; its end without finish() leaves the rest in the logs. It must outlive
/// the CollectiveFile that it came from.
class HeldBack {
 public:
  virtual ~HeldBack() = default;

  /// What any rank held back is in the file, durably, and this rank's log is gone. Not collective.
  /// After an error the log is still there.
  virtual Status finish() = 0;
};

}  // namespace forebay
