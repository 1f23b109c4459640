#pragma once

#include <condition_variable>
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

/// While it lives, what this thread reaches by name is waited for by nobody: neither what is needed
/// to finish files, nor what a signal handler of the program's does meanwhile.
class NoWaits {
 public:
  NoWaits() { hold_ = true; }
  ~NoWaits() { hold_ = before_; }
  NoWaits(const NoWaits&) = delete;
  NoWaits& operator=(const NoWaits&) = delete;

  static bool hold_here() { return hold_; }

 private:
  static thread_local bool hold_;
  const bool before_ = hold_;
};

/// Files that the program has closed while their bytes were on their way (the hint
/// forebay_cache_flush=deferred). Thread-safe.
class UnfinishedFiles {
 public:
  /// `file`, whose report was written if there is to be one; what comes after it is added.
  void add(std::shared_ptr<OpenFile> file, std::unique_ptr<HeldBack> held_back);

  /// None is on its way, nor waited for by any thread.
  bool empty() const;

  /// Waits for the file at `path`, whatever it was called when it was opened, and for all files of
  /// its family: those in its directory whose names differ from its name in numbers alone, as those
  /// of a series of checkpoints do; also for those that another thread has begun to wait for.
  /// Error: that of the file itself; another one's is told on standard error. What failed may be
  /// tried again.
  Status finish_family(const std::string& path);

  /// Waits for the file that the program is about to reach by `path` in another way than by MPI.
  /// Where it `moves` what is there: also for all files in that directory, whose notices lie there.
  /// Returns 0, or the errno of what could not be brought to it, which is told on standard error.
  int finish_at(const char* path, bool moves);

  /// Waits for all. Errors are told on standard error.
  void finish_all();

  /// What could not be finished stays in its logs: nobody tries again.
  void abandon_all();

 private:
  struct Unfinished {
    std::shared_ptr<OpenFile> file;
    std::unique_ptr<HeldBack> held_back;
    LateCounters reported;  ///< What the file's record has of them.
  };
  static void report_growth(const Unfinished& unfinished);
  template <typename Which>
  std::vector<Unfinished> take(const Which& which);
  template <typename Meant>
  Status finish(std::vector<Unfinished> files, const Meant& meant);
  void give_back(std::vector<Unfinished>& files) noexcept;
  void tell_waiting() const;

  mutable std::mutex mutex_;
  std::condition_variable finished_;
  std::vector<Unfinished> files_;                     ///< Guarded by mutex_, as is what follows.
  std::vector<std::shared_ptr<OpenFile>> under_way_;  ///< Some thread waits for these.
};

UnfinishedFiles& unfinished_files();

}  // namespace forebay
