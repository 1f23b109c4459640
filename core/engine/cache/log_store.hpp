#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/model/error.hpp"
#include "core/model/extent.hpp"
#include "core/storage/file.hpp"

namespace forebay {

/// What an earlier use of a file left in it.
struct EarlierUse {
  std::uint32_t salt = 0;  ///< Of the last one. Each use has the one before's and one more.
  Bytes filled = 0;        ///< Up to here the file was written to.
};

/// A file of a log: its storage, and where the file lives in memory anyway (tmpfs), the same bytes
/// as they lie there, so that they are flushed without another copy.
struct LogFile {
  std::unique_ptr<StorageFile> storage;
  std::shared_ptr<std::byte> memory;  ///< Null: read and written through `storage`.
  Bytes memory_bytes = 0;
  std::optional<EarlierUse> earlier = std::nullopt;
  /// Making it took the time to fill all of it with zeros. What is used again keeps that.
  bool zeroed = false;

  static LogFile of(std::unique_ptr<StorageFile> storage) {
    return {std::move(storage), nullptr, 0};
  }
};

/// Where the files of one log lie: a flat set of names. Implementations: LogDirectory, and stores
/// of tests that fail or forget. Calls may be made from several threads at once.
class LogStore {
 public:
  virtual ~LogStore() = default;

  /// A new file of `size` zero bytes, with storage behind all of them. Errors: exists, no_space,
  /// ...
  virtual Result<LogFile> create(const std::string& name, Bytes size) = 0;
  /// The same for who is about to fill it: storage may come as it is written to, where there is
  /// plenty of it and getting it first would take time.
  virtual Result<LogFile> lay_out(const std::string& name, Bytes size) {
    return create(name, size);
  }
  /// A file that is there, to read or to write. Errors: no_such_file, access, ...
  virtual Result<std::unique_ptr<StorageFile>> open(const std::string& name) = 0;
  /// The same, to read what is there, of which nothing is cut off meanwhile.
  virtual Result<LogFile> open_contents(const std::string& name) {
    return open(name).map(LogFile::of);
  }
  /// All names, ascending.
  virtual Result<std::vector<std::string>> list() = 0;
  /// Replaces what has the new name.
  virtual Status rename(const std::string& from, const std::string& to) = 0;
  /// Moves a file to another store of the same kind and place, where `as` must be new. Error:
  /// unsupported, ...
  virtual Status move_to(LogStore& other, const std::string& name, const std::string& as) = 0;
  /// Not an error if it is gone.
  virtual Status remove(const std::string& name) = 0;
  /// Names are durable on return.
  virtual Status sync() = 0;
  /// Removes all files and the store itself, which is of no use afterwards.
  virtual Status destroy() = 0;

  /// For messages, and to find it again.
  virtual const std::string& path() const = 0;
};

}  // namespace forebay
