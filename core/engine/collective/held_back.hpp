#pragma once

#include "core/model/error.hpp"

namespace forebay {

/// What a file that was closed early has still to bring to the file (forebay_cache_flush=deferred).
/// It must outlive the CollectiveFile that it came from. Neither of its calls is collective.
class HeldBack {
 public:
  virtual ~HeldBack() = default;

  /// A thread begins to bring this rank's part. Once, when the program's own file is closed: what
  /// is under way would hold that up where a close waits for its process's writes.
  virtual void start() = 0;

  /// What any rank held back is in the file, durably, and this rank's log is gone. After an error
  /// the log is still there, and it may be tried again.
  virtual Status finish() = 0;
};

}  // namespace forebay
