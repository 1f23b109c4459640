#pragma once

#include <atomic>
#include <cstddef>
#include <deque>
#include <memory>
#include <mutex>
#include <utility>

#include "core/model/extent.hpp"
#include "core/model/extent_set.hpp"
#include "core/storage/file_version.hpp"

namespace forebay::posix {

/// What a process has read of a file that is read ahead, by all of its openings, to see whether it
/// reads it more than once: then it belongs into the page cache, where it stays. Thread-safe.
class EarlierReads {
 public:
  /// `wanted` bytes of `read` were declared. Whether so much was read before that the rest should
  /// come from the page cache.
  bool add(Extent read, Bytes wanted);

  /// As add() has it, of what was read until now.
  bool are_repeated() const { return state_.load() == State::repeated; }

  /// It does not come from the page cache, or a person wants it otherwise: add() is false.
  void stop() { state_.store(State::of_no_use); }

 private:
  enum class State { once, repeated, of_no_use };

  /// Extents that lie apart and are remembered.
  static constexpr std::size_t most_apart = 4096;

  std::atomic<State> state_{State::once};
  std::mutex mutex_;
  ExtentSet read_{most_apart};   ///< Guarded by mutex_, as is what follows.
  ExtentSet again_{most_apart};  ///< More than once.
  Bytes declared_again_ = 0;     ///< Of that, what was declared, each byte once.
  Bytes bytes_read_ = 0;         ///< Of what was declared, as often as it was.
  Bytes bytes_repeated_ = 0;     ///< Of these, what had been read before.
};

/// Those of the files that were opened last. Not thread-safe.
class FilesReadEarlier {
 public:
  /// Null where nothing is known of it.
  std::shared_ptr<EarlierReads> find(const FileVersion& version) const;
  /// The same, or new ones. Those of files that nobody has open go first.
  std::shared_ptr<EarlierReads> of(const FileVersion& version);
  bool are_repeated(const FileVersion& version) const;

 private:
  static constexpr std::size_t most = 16;

  std::deque<std::pair<FileVersion, std::shared_ptr<EarlierReads>>> files_;
};

}  // namespace forebay::posix
