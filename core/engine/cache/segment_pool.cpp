#include "core/engine/cache/segment_pool.hpp"

#include <utility>

#include "core/engine/cache/background_thread.hpp"

namespace forebay {

SegmentPool::SegmentPool(LogStore& store, Bytes segment_bytes,
                         std::unique_ptr<ResourceHolder> capacity)
    : store_(store), segment_bytes_(segment_bytes), capacity_(std::move(capacity)) {
  worker_ = background_thread([this] { work(); });
}

SegmentPool::~SegmentPool() {
  {
    const std::scoped_lock lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  worker_.join();
}

std::string SegmentPool::next_name() {
  const std::scoped_lock lock(mutex_);
  return "blank-" + std::to_string(next_number_++);
}

Result<SegmentPool::Blank> SegmentPool::make() {
  std::string name = next_name();
  auto file = store_.create(name, segment_bytes_);
  if (!file) return tl::unexpected(file.error());
  return Blank{std::move(name), std::move(*file)};
}

void SegmentPool::prepare() {
  {
    const std::scoped_lock lock(mutex_);
    if (stopping_ || making_ || blank_ || !capacity_->take(segment_bytes_)) return;
    making_ = true;
  }
  changed_.notify_all();
}

void SegmentPool::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return stopping_ || making_; });
    if (!making_) return;
    lock.unlock();
    auto made = make();
    lock.lock();
    making_ = false;
    if (made) {
      blank_ = std::move(*made);
    } else {
      // Whoever needs one tries again and gets the error.
      capacity_->give_back(segment_bytes_);
    }
    changed_.notify_all();
  }
}

Result<std::optional<SegmentPool::Blank>> SegmentPool::take() {
  {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return !making_; });
    if (blank_) return std::exchange(blank_, std::nullopt);
  }
  if (!capacity_->take(segment_bytes_)) return std::nullopt;
  auto made = make();
  if (!made) {
    capacity_->give_back(segment_bytes_);
    return tl::unexpected(made.error());
  }
  return std::optional(std::move(*made));
}

Result<bool> SegmentPool::wait(std::chrono::milliseconds patience) {
  {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return !making_; });
    if (blank_) return true;
  }
  if (!capacity_->take(segment_bytes_, patience)) return false;
  auto made = make();
  if (!made) {
    capacity_->give_back(segment_bytes_);
    return tl::unexpected(made.error());
  }
  const std::scoped_lock lock(mutex_);
  blank_ = std::move(*made);
  return true;
}

void SegmentPool::close() {
  std::unique_lock lock(mutex_);
  stopping_ = true;
  changed_.notify_all();
  changed_.wait(lock, [this] { return !making_; });
  blank_.reset();
  capacity_->give_back(capacity_->held());
}

void SegmentPool::trim() {
  if (!capacity_->wanted_by_others()) return;
  std::optional<Blank> spare;
  {
    const std::scoped_lock lock(mutex_);
    spare = std::exchange(blank_, std::nullopt);
  }
  if (!spare) return;
  spare->file = {};
  // If it cannot be removed, the device has less than the capacity says, which happens anyway.
  (void)store_.remove(spare->name);
  capacity_->give_back(segment_bytes_);
}

Status SegmentPool::give_back(const std::string& name, std::optional<LogFile> file) {
  if (file && !capacity_->wanted_by_others()) {
    const std::string blank_name = next_name();
    const std::scoped_lock lock(mutex_);
    if (!making_ && !blank_ && store_.rename(name, blank_name)) {
      blank_ = Blank{blank_name, std::move(*file)};
      return {};
    }
  }
  file.reset();
  auto removed = store_.remove(name);
  capacity_->give_back(segment_bytes_);
  return removed;
}

}  // namespace forebay
