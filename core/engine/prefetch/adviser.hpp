#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "core/engine/prefetch/prefetch_figures.hpp"
#include "core/plan/block_advice.hpp"
#include "core/storage/fetch_source.hpp"

namespace forebay {

class Adviser;

/// One opening of a file whose reads are told to the kernel ahead of them, and which the kernel
/// then serves from its page cache. Thread-safe.
class AdvisedFile : public std::enable_shared_from_this<AdvisedFile> {
 public:
  AdvisedFile(Adviser& adviser, std::string path, std::unique_ptr<FetchSource> source,
              BlockAdvice advice);

  /// The program is about to read. Waits for nothing.
  void note(Extent read);

  PrefetchFigures figures() const;
  const std::string& path() const { return path_; }

 private:
  friend class Adviser;

  Adviser& adviser_;
  const std::string path_;
  std::unique_ptr<FetchSource> source_;  ///< The adviser's thread's, as is advice_.
  BlockAdvice advice_;
  mutable std::mutex mutex_;
  PrefetchFigures figures_;  ///< Guarded by mutex_.
};

/// Gives advice for all files of a process, in a thread of its own. Outlives its files.
/// Thread-safe.
class Adviser {
 public:
  Adviser();
  ~Adviser();
  Adviser(const Adviser&) = delete;
  Adviser& operator=(const Adviser&) = delete;

  /// `source` reads through the page cache.
  std::shared_ptr<AdvisedFile> add(std::string path, std::unique_ptr<FetchSource> source,
                                   BlockAdvice advice);

  /// Gives no advice any more, and closes all sources.
  void end();

 private:
  friend class AdvisedFile;

  struct Note {
    std::shared_ptr<AdvisedFile> file;
    Extent read;
  };

  /// Reads beyond these that wait for the thread are forgotten, the oldest first.
  static constexpr std::size_t most_notes = 256;

  void work();
  static void advise(AdvisedFile& file, Extent read);

  std::mutex mutex_;
  std::condition_variable noted_;
  std::deque<Note> notes_;  ///< Guarded by mutex_, as is what follows.
  std::vector<std::weak_ptr<AdvisedFile>> files_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace forebay
