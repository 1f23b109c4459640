#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/engine/prefetch/leavable_thread.hpp"
#include "core/engine/prefetch/page_cache_fetch.hpp"
#include "core/engine/prefetch/prefetch_figures.hpp"
#include "core/model/extent_set.hpp"
#include "core/plan/plan_places.hpp"
#include "core/plan/read_advice.hpp"
#include "core/storage/fetch_source.hpp"
#include "core/storage/read_progress.hpp"

namespace forebay {

class Adviser;

/// One opening of a file whose reads are told to the kernel ahead of them, and which the kernel
/// then serves from its page cache. Thread-safe.
class AdvisedFile : public std::enable_shared_from_this<AdvisedFile> {
 public:
  AdvisedFile(Adviser& adviser, std::string path, std::unique_ptr<FetchSource> source,
              std::unique_ptr<ReadAdvice> advice, std::unique_ptr<PageCacheFetch> fetch);

  /// The program is about to read. Waits for nothing. False: all that was foreseen is passed and
  /// stays in the page cache, so that no read need be noted any more.
  bool note(Extent read);

  /// Reads that the kernel carried out before nothing but a mapping shows the file any more.
  void count(const KernelReads& by_kernel);

  /// Reads that note() is not told of are found by looking, from now on. Until forget().
  void watch(std::shared_ptr<ReadProgress> progress);
  void forget(const std::shared_ptr<ReadProgress>& progress);
  /// The program is about to close `descriptor`: a reader that is watched by it is looked at once
  /// more, then no more.
  void closing(int descriptor);

  /// The program reads no more: gives up what is still held. The figures are final. Waits for the
  /// thread, but not for ever: a file server may not answer it.
  void finish();

  /// What is at `offset` is read near to where the last read that was noted ended, by the plan.
  bool foresees(Bytes offset);

  /// The reads are finished, or as ReadAdvice has it: not while the thread has yet to begin.
  bool is_done();

  PrefetchFigures figures() const;
  const std::string& path() const { return path_; }

 private:
  friend class Adviser;

  void act(Extent read);
  void count_cpu(std::int64_t nanoseconds);
  void agree();
  bool look();
  void carry_out(const std::vector<ReadAdvice::Item>& items);
  void let_go(std::span<const ReadAdvice::Item> items);
  /// What the advice says is brought to the page cache, and taken out; else it is passed on.
  bool is_fetched() const;
  /// How the program is watched now.
  std::vector<std::shared_ptr<ReadProgress>> ways() const;
  bool is_watched() const;

  Adviser& adviser_;
  const std::string path_;
  const ExtentSet declared_;
  std::atomic<bool> is_finishing_{false};
  std::atomic<bool> has_ended_{false};  ///< As note() has it.

  std::mutex acting_;                    ///< Held while advice is given.
  std::unique_ptr<FetchSource> source_;  ///< Guarded by acting_, as is what follows; may be null.
  std::unique_ptr<ReadAdvice> advice_;
  std::unique_ptr<PageCacheFetch> fetch_;  ///< Null: the kernel is told what the advice says.
  ExtentSet fetched_{most_fetched_apart};

  mutable std::mutex mutex_;
  PrefetchFigures figures_;      ///< Guarded by mutex_, as is what follows.
  Extent noted_;                 ///< The last read.
  std::vector<Extent> extents_;  ///< Of the plan, until foresees() is asked:
  std::optional<PlanPlaces> places_;
  Bytes reached_ = 0;  ///< A place.
  std::vector<std::shared_ptr<ReadProgress>> progress_;
};

/// Gives advice for all files of a process, in a thread of its own. Outlives its files.
/// Thread-safe.
class Adviser {
 public:
  /// `prepare`: called in the thread, before all else.
  explicit Adviser(std::function<void()> prepare = nullptr);
  ~Adviser();
  Adviser(const Adviser&) = delete;
  Adviser& operator=(const Adviser&) = delete;

  /// `source` reads through the page cache. With `fetch`, what the advice says is fetched whole,
  /// and given up when nobody on the node wants it; else the kernel is told what it says.
  std::shared_ptr<AdvisedFile> add(std::string path, std::unique_ptr<FetchSource> source,
                                   std::unique_ptr<ReadAdvice> advice,
                                   std::unique_ptr<PageCacheFetch> fetch = nullptr);

  /// Gives no advice any more, and closes all sources. Waits for the thread, but not for long: one
  /// that a file server does not answer is left, with all sources, and this is not to be destroyed
  /// then.
  void end();

 private:
  friend class AdvisedFile;

  struct Note {
    std::shared_ptr<AdvisedFile> file;
    Extent read;  ///< Empty: it begins.
  };

  /// Reads beyond these that wait for the thread are forgotten, the oldest first.
  static constexpr std::size_t most_notes = 256;

  /// Between two looks at files that are watched: of a budget of 8 MiB a reader at 1 GB/s takes an
  /// eighth in the shorter time. Each look in vain doubles it.
  static constexpr std::chrono::milliseconds shortest_look{1};
  static constexpr std::chrono::milliseconds longest_look{32};

  void add_note(Note note);
  /// What is watched has changed.
  void look_soon();
  void work();
  std::vector<std::shared_ptr<AdvisedFile>> watched();

  std::mutex mutex_;
  std::condition_variable noted_;
  std::deque<Note> notes_;  ///< Guarded by mutex_, as is what follows.
  std::vector<std::weak_ptr<AdvisedFile>> files_;
  bool is_changed_ = false;  ///< Other files are watched.
  bool stopping_ = false;
  std::atomic<bool> is_stuck_{false};  ///< The thread was waited for in vain.
  LeavableThread thread_;
};

}  // namespace forebay
