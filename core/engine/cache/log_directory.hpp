#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "core/engine/cache/log_store.hpp"
#include "core/model/counters.hpp"
#include "core/storage/descriptor.hpp"

namespace forebay {

/// The directory of all logs of this user below a node-local path: "forebay-cache-UID", for this
/// user alone (mode 0700). Every log is a directory in it. Nothing is reached through a symbolic
/// link, and what is not this user's or is open to others is refused: a node-local path is open to
/// all, and a log decides what is written into whose file.
class CacheDirectory {
 public:
  enum class Access { create, existing };

  /// `local_path` is the node-local path, or the user's directory in it. Errors: access (a link, of
  /// another user, or open to others), no_such_file, io, ...
  static Result<std::shared_ptr<CacheDirectory>> open(const std::string& local_path, Access access);

  /// Without symbolic links: the same however it was reached, so that others find it.
  const std::string& path() const { return path_; }
  /// Of the directory itself, for what else lies in it.
  int descriptor() const { return directory_.get(); }
  /// It is on a file system in memory, which nothing survives the loss of power in.
  bool in_memory() const;
  /// Names of the logs, ascending. What is no directory is left out, and what begins with a dot: a
  /// log that is not all there yet.
  Result<std::vector<std::string>> logs() const;

 private:
  friend class LogDirectory;
  CacheDirectory(Descriptor directory, std::string path);

  Descriptor directory_;
  std::string path_;
};

/// One log in a CacheDirectory. While it is in use, the file "lock" in it is locked (open file
/// description lock), so that nobody replays what is still being written; the kernel drops the lock
/// when the process dies. A recovery shares its lock for reading, which excludes programs and other
/// recoveries as well, so that it is told apart. The lock file is none of the store's names.
class LogDirectory final : public LogStore {
 public:
  /// Makes and locks it. `name` must be new. The log's own storage calls are counted apart.
  static Result<std::unique_ptr<LogDirectory>> create(std::shared_ptr<CacheDirectory> parent,
                                                      const std::string& name);

  enum class Use {
    look,     ///< Reads what is there, which may change meanwhile.
    replace,  ///< Locks it. Error: exists, where a process that lives uses it.
  };
  static Result<std::unique_ptr<LogDirectory>> open(std::shared_ptr<CacheDirectory> parent,
                                                    const std::string& name, Use use);

  /// Gives it another name, which must be new.
  Status rename_log(const std::string& name);

  /// Who but this LogDirectory holds the lock.
  enum class User {
    nobody,
    program,
    recovery,  ///< It called say_recovering().
  };
  User user() const;
  bool in_use() const { return user() != User::nobody; }

  /// The lock, which it holds, is that of a recovery from here on.
  Status say_recovering();

  Result<LogFile> create(const std::string& name, Bytes size) override;
  /// Storage comes as it is written to on tmpfs, as long as half of that is free.
  Result<LogFile> lay_out(const std::string& name, Bytes size) override;
  Result<std::unique_ptr<StorageFile>> open(const std::string& name) override;
  /// What lies in memory up to the first hole, which it would take memory to look into, is not
  /// copied to be read.
  Result<LogFile> open_contents(const std::string& name) override;
  Result<std::vector<std::string>> list() override;
  Status rename(const std::string& from, const std::string& to) override;
  Status move_to(LogStore& other, const std::string& name, const std::string& as) override;
  Status remove(const std::string& name) override;
  Status sync() override;
  Status destroy() override;
  const std::string& path() const override { return path_; }

 private:
  LogDirectory(std::shared_ptr<CacheDirectory> parent, std::string name, Descriptor directory);
  std::string path_of(const std::string& name) const { return path_ + "/" + name; }
  Status take_lock();
  Result<Descriptor> open_file(const std::string& name) const;
  enum class Storage {
    now,
    later,  ///< As it is written to.
  };
  /// A file of that size, or none is left.
  Result<LogFile> make(const std::string& name, Bytes size, Storage storage);

  std::shared_ptr<CacheDirectory> parent_;
  std::string name_;
  std::string path_;
  Descriptor directory_;
  Descriptor lock_;  ///< None where the log has no lock file, or not yet.
  const bool in_memory_;
  std::atomic<bool> is_found_{false};  ///< After a loss of power, by its name.
  Counters counters_;
};

}  // namespace forebay
