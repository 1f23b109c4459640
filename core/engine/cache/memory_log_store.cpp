#include "core/engine/cache/memory_log_store.hpp"

#include <cerrno>
#include <utility>

namespace forebay {

class MemoryLogStore final : public LogStore {
 public:
  MemoryLogStore(MemoryLog& log, std::shared_ptr<FaultPlan> plan)
      : log_(log), plan_(std::move(plan)) {}

  Result<LogFile> create(const std::string& name, Bytes size) override {
    const auto inode = std::make_shared<VolatileInode>(StripeLayout{}, path_ + "/" + name);
    auto file = with_faults(open_volatile_file(inode));
    if (auto allocated = file->allocate(size); !allocated) {
      return tl::unexpected(allocated.error());
    }
    const std::scoped_lock lock(log_.mutex_);
    if (log_.destroyed_) return fail(ENOENT, name);
    if (!log_.files_.emplace(name, inode).second) return fail(EEXIST, name);
    log_.renamed();
    return LogFile{std::move(file), nullptr, 0};
  }

  Result<std::unique_ptr<StorageFile>> open(const std::string& name) override {
    const std::scoped_lock lock(log_.mutex_);
    const auto found = log_.files_.find(name);
    if (found == log_.files_.end()) return fail(ENOENT, name);
    return with_faults(open_volatile_file(found->second));
  }

  Result<std::vector<std::string>> list() override {
    const std::scoped_lock lock(log_.mutex_);
    std::vector<std::string> names;
    for (const auto& [name, inode] : log_.files_) names.push_back(name);
    return names;
  }

  Status rename(const std::string& from, const std::string& to) override {
    const std::scoped_lock lock(log_.mutex_);
    auto moved = log_.files_.extract(from);
    if (moved.empty()) return fail(ENOENT, from);
    moved.key() = to;
    log_.files_.erase(to);
    log_.files_.insert(std::move(moved));
    log_.renamed();
    return {};
  }

  Status move_to(LogStore& other, const std::string& name, const std::string& as) override {
    auto* const to = dynamic_cast<MemoryLogStore*>(&other);
    if (to == nullptr) return fail(EXDEV, name);
    const std::scoped_lock lock(log_.mutex_, to->log_.mutex_);
    if (to->log_.files_.contains(as)) return fail(EEXIST, as);
    auto moved = log_.files_.extract(name);
    if (moved.empty()) return fail(ENOENT, name);
    moved.key() = as;
    to->log_.files_.insert(std::move(moved));
    log_.renamed();
    to->log_.renamed();
    return {};
  }

  Status remove(const std::string& name) override {
    const std::scoped_lock lock(log_.mutex_);
    log_.files_.erase(name);
    log_.renamed();
    return {};
  }

  Status sync() override {
    const std::scoped_lock lock(log_.mutex_);
    log_.name_sets_ = {log_.files_};
    return {};
  }

  Status destroy() override {
    const std::scoped_lock lock(log_.mutex_);
    log_.files_.clear();
    log_.destroyed_ = true;
    log_.renamed();
    return {};
  }

  const std::string& path() const override { return path_; }

 private:
  std::unique_ptr<StorageFile> with_faults(std::unique_ptr<StorageFile> file) const {
    return plan_ == nullptr ? std::move(file) : make_faulty(std::move(file), plan_);
  }
  tl::unexpected<Error> fail(int os_errno, const std::string& name) const {
    return tl::unexpected(error_from_errno(os_errno, path_ + "/" + name));
  }

  MemoryLog& log_;
  const std::shared_ptr<FaultPlan> plan_;
  const std::string path_ = "log";
};

MemoryLog::MemoryLog(const std::map<std::string, Content>& files) {
  for (const auto& [name, content] : files) {
    files_[name] = std::make_shared<VolatileInode>(content, StripeLayout{}, "log/" + name);
  }
  name_sets_ = {files_};
}

std::unique_ptr<LogStore> MemoryLog::open(std::shared_ptr<FaultPlan> plan) {
  return std::make_unique<MemoryLogStore>(*this, std::move(plan));
}

std::map<std::string, MemoryLog::Content> MemoryLog::files() const {
  const std::scoped_lock lock(mutex_);
  std::map<std::string, Content> contents;
  for (const auto& [name, inode] : files_) contents[name] = inode->content();
  return contents;
}

std::shared_ptr<MemoryLog> MemoryLog::after_crash(CrashKind kind, std::mt19937_64& random) const {
  const std::scoped_lock lock(mutex_);
  Files names = files_;
  if (kind == CrashKind::all_lost) names = name_sets_.front();
  if (kind == CrashKind::partly_lost) names = name_sets_[random() % name_sets_.size()];
  auto left = std::make_shared<MemoryLog>();
  for (const auto& [name, inode] : names) left->files_[name] = inode->after_crash(kind, random);
  left->name_sets_ = {left->files_};
  return left;
}

bool MemoryLog::destroyed() const {
  const std::scoped_lock lock(mutex_);
  return destroyed_;
}

}  // namespace forebay
