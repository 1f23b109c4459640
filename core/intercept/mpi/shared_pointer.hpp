#pragma once

#include <mutex>
#include <string>

#include "core/model/error.hpp"
#include "core/model/extent.hpp"

namespace forebay {

/// The shared file pointer of one collectively opened file, in data bytes of the file view: a small
/// hidden file beside the data file, made on first use by whichever rank comes first, under a lock.
/// It works wherever the data file itself can be shared. Where nothing may be made beside the data
/// file (a read-only directory), it lies in memory that the ranks share, if they share any. While
/// the hidden file is empty, the pointer is at its initial position, which every rank knows. All
/// calls are thread-safe.
class SharedPointer {
 public:
  /// Ranks of one opening pass the same values: `hidden_path` beside the data file, `memory_path`
  /// on a file system in memory that all of them see, or empty. Touches nothing until the pointer
  /// is used.
  SharedPointer(std::string hidden_path, std::string memory_path, Bytes initial);
  ~SharedPointer();
  SharedPointer(const SharedPointer&) = delete;
  SharedPointer& operator=(const SharedPointer&) = delete;

  /// Adds `amount`, as far as an offset can go, and returns where the pointer stood.
  Result<Bytes> fetch_and_add(Bytes amount);
  Result<Bytes> get();
  Status set(Bytes position);

  /// This rank used the pointer, so the hidden file exists.
  bool used() const;
  /// Removes the hidden file: by one rank, when all are done.
  void remove();

 private:
  /// Opens the hidden file, or makes it. 0, or errno.
  int open_file();
  /// Runs `change(position)` under the lock and stores what it returns.
  template <typename Change>
  Status locked(Change&& change);

  const std::string path_;
  const std::string memory_path_;
  const Bytes initial_;
  mutable std::mutex mutex_;  ///< The file lock does not keep threads of one process apart.
  int fd_ = -1;
};

}  // namespace forebay
