#include "core/engine/collective/file_handles.hpp"

#include <utility>

#include "core/engine/collective/state_of_file.hpp"

namespace forebay {

std::shared_ptr<FileHandles> FileHandles::of(const FileId& id) {
  return state_of_file<FileHandles>(id);
}

FileHandles::Handle::Handle(std::shared_ptr<FileHandles> all) : all_(std::move(all)) {
  const std::scoped_lock lock(all_->mutex_);
  ++all_->handles_;
}

FileHandles::Handle::~Handle() {
  const std::scoped_lock lock(all_->mutex_);
  --all_->handles_;
}

bool FileHandles::Handle::is_only_one() const {
  const std::scoped_lock lock(all_->mutex_);
  return all_->handles_ == 1;
}

FileHandles::Cache::Cache(std::shared_ptr<FileHandles> all, End end) : all_(std::move(all)) {
  ++caches_in_process_;
  const std::scoped_lock lock(all_->mutex_);
  all_->caches_.emplace(this, std::move(end));
  if (all_->handles_ > 1) (void)all_->end_locked();
}

FileHandles::Cache::~Cache() {
  --caches_in_process_;
  const std::scoped_lock lock(all_->mutex_);
  all_->caches_.erase(this);
}

Status FileHandles::end_caches() {
  const std::scoped_lock lock(mutex_);
  return end_locked();
}

Status FileHandles::end_locked() {
  Status worst;
  std::erase_if(caches_, [&worst](const auto& cache) {
    Status ended = cache.second();
    if (ended) return true;
    worst = std::move(ended);
    return false;
  });
  return worst;
}

}  // namespace forebay
