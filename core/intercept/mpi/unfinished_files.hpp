#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "core/engine/collective/held_back.hpp"
#include "core/intercept/mpi/file_record.hpp"
#include "core/intercept/mpi/open_file.hpp"
#include "core/model/error.hpp"

namespace forebay {

/// Files that the program has closed while their bytes were on their way (the hint
/// forebay_cache_flush=deferred). Thread-safe.
class UnfinishedFiles {
 public:
  /// `file`, whose report was written if there is to be one; what comes after it is added.
  void add(std::shared_ptr<OpenFile> file, std::unique_ptr<HeldBack> held_back);

  bool empty() const;

  /// Waits for the file at `path`, whatever it was called when it was opened, and for all files of
  /// its family: those in its directory whose names differ from its name in numbers alone, as those
  /// of a series of checkpoints do. Error: that of the file itself; another one's is told on
  /// standard error. What failed may be tried again.
  Status finish_family(const std::string& path);

  /// Waits for all. Errors are told on standard error.
  void finish_all();

  /// What could not be finished stays in its logs: nobody tries again.
  void abandon_all();

 private:
  struct Unfinished {
    std::shared_ptr<OpenFile> file;
    std::unique_ptr<HeldBack> held_back;
    LateCounters reported;  ///< What the file's record has of them.

    /// Names may change, and a link has one of its own: `there` is what `path` names now.
    bool is_at(const std::string& path, const std::optional<FileId>& there) const {
      return file->record.path == path || (there && file->id == there);
    }
  };
  static void report_growth(const Unfinished& unfinished);
  Status finish(std::vector<Unfinished> files, const std::string& path);

  mutable std::mutex mutex_;
  std::vector<Unfinished> files_;
};

UnfinishedFiles& unfinished_files();

}  // namespace forebay
