#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/engine/cache/log_store.hpp"

namespace forebay {

/// A store that is another one, but for what a derived class does differently: for tests.
class ForwardingLogStore : public LogStore {
 public:
  Result<LogFile> create(const std::string& name, Bytes size) override {
    return inner_->create(name, size);
  }
  Result<std::unique_ptr<StorageFile>> open(const std::string& name) override {
    return inner_->open(name);
  }
  Result<std::vector<std::string>> list() override { return inner_->list(); }
  Status rename(const std::string& from, const std::string& to) override {
    return inner_->rename(from, to);
  }
  Status move_to(LogStore& other, const std::string& name, const std::string& as) override {
    return inner_->move_to(other, name, as);
  }
  Status remove(const std::string& name) override { return inner_->remove(name); }
  Status sync() override { return inner_->sync(); }
  Status destroy() override { return inner_->destroy(); }
  const std::string& path() const override { return inner_->path(); }

 protected:
  explicit ForwardingLogStore(std::unique_ptr<LogStore> inner) : inner_(std::move(inner)) {}

 private:
  const std::unique_ptr<LogStore> inner_;
};

}  // namespace forebay
