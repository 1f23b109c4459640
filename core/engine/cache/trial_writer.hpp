#pragma once

#include <sys/uio.h>

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <span>

#include "core/engine/cache/log_trial.hpp"
#include "core/engine/cache/log_writer.hpp"
#include "core/model/extent_set.hpp"
#include "core/storage/file.hpp"

namespace forebay {

/// The writes of one cached file while a LogTrial goes on: to the log, to the file, or to both,
/// a part to each. Thread-safe.
class TrialWriter {
 public:
  using Append = std::function<LogWriter::Outcome(std::span<const iovec> pieces, Bytes offset)>;

  /// `trial` may be null: all goes to the log then. `append` writes to the log, on any thread.
  /// `wrote_to_file` becomes true when the file was given something.
  TrialWriter(std::shared_ptr<LogTrial> trial, StorageFile& file, Append append,
              std::atomic<bool>& wrote_to_file);

  /// As LogWriter::append(); what goes to the file counts as logged, too.
  LogWriter::Outcome write(std::span<const iovec> pieces, Bytes offset);

 private:
  static constexpr std::size_t most_given_apart = 4096;

  bool is_over() const { return trial_ == nullptr || trial_->is_over(); }
  LogWriter::Outcome write_to_file(std::span<const iovec> pieces, Bytes offset, Bytes length);
  bool was_given(Extent extent);
  void give(Extent extent);

  const std::shared_ptr<LogTrial> trial_;  ///< Or null.
  StorageFile& file_;
  const Append append_;
  std::atomic<bool>& wrote_to_file_;
  std::mutex given_mutex_;
  /// What was given to the log while there was a trial; what does not fit in is all the rest.
  /// Guarded by given_mutex_.
  ExtentSet given_{most_given_apart};
  bool all_given_ = false;  ///< The same.
};

}  // namespace forebay
