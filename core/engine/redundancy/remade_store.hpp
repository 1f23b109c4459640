#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/engine/cache/log_store.hpp"

namespace forebay {

/// The part of a damaged log's store where its segments are made again: names of their own there,
/// so that whoever reads the log does not meet them, and they go with it.
class RemadeStore final : public LogStore {
 public:
  /// Empty: what an attempt that was interrupted left is removed. `log` outlives it.
  static Result<std::unique_ptr<RemadeStore>> make(LogStore& log);

  Result<LogFile> create(const std::string& name, Bytes size) override;
  Result<std::unique_ptr<StorageFile>> open(const std::string& name) override;
  Result<std::vector<std::string>> list() override;
  Status rename(const std::string& from, const std::string& to) override;
  Status move_to(LogStore& other, const std::string& name, const std::string& as) override;
  Status remove(const std::string& name) override;
  Status sync() override { return log_.sync(); }
  /// The log itself stays.
  Status destroy() override;
  const std::string& path() const override { return log_.path(); }

 private:
  explicit RemadeStore(LogStore& log) : log_(log) {}

  LogStore& log_;
};

}  // namespace forebay
