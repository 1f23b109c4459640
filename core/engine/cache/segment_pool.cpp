#include "core/engine/cache/segment_pool.hpp"

#include <algorithm>
#include <utility>

#include "core/storage/background_thread.hpp"

namespace forebay {

SegmentPool::SegmentPool(LogStore& store, Sizes sizes, std::unique_ptr<ResourceHolder> capacity)
    : store_(store),
      largest_(sizes.largest),
      capacity_(std::move(capacity)),
      next_bytes_(std::min(sizes.first, sizes.largest)) {
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

Result<SegmentPool::Blank> SegmentPool::make(Bytes bytes) {
  std::string name = next_name();
  auto file = store_.create(name, bytes);
  if (!file) {
    capacity_->give_back(bytes);
    return tl::unexpected(file.error());
  }
  return Blank{std::move(name), bytes, std::move(*file)};
}

/// One has been made. With mutex_ held.
void SegmentPool::grow() { next_bytes_ = std::min(2 * next_bytes_, largest_); }

void SegmentPool::prepare() {
  {
    const std::scoped_lock lock(mutex_);
    if (stopping_ || making_ || blank_ || !capacity_->take(next_bytes_)) return;
    making_ = true;
  }
  changed_.notify_all();
}

void SegmentPool::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return stopping_ || making_; });
    if (!making_) return;
    const Bytes bytes = next_bytes_;
    lock.unlock();
    auto made = make(bytes);
    lock.lock();
    making_ = false;
    // Where it failed, whoever needs one tries again and gets the error.
    if (made) {
      blank_ = std::move(*made);
      grow();
    }
    changed_.notify_all();
  }
}

Result<std::optional<SegmentPool::Blank>> SegmentPool::take() {
  Bytes bytes = 0;
  {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return !making_; });
    if (blank_) return std::exchange(blank_, std::nullopt);
    bytes = next_bytes_;
  }
  if (!capacity_->take(bytes)) return std::nullopt;
  auto made = make(bytes);
  if (!made) return tl::unexpected(made.error());
  const std::scoped_lock lock(mutex_);
  grow();
  return std::optional(std::move(*made));
}

Result<bool> SegmentPool::wait(std::chrono::milliseconds patience) {
  Bytes bytes = 0;
  {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return !making_; });
    if (blank_) return true;
    bytes = next_bytes_;
  }
  if (!capacity_->take(bytes, patience)) return false;
  auto made = make(bytes);
  if (!made) return tl::unexpected(made.error());
  {
    const std::scoped_lock lock(mutex_);
    if (!blank_) {
      blank_ = std::move(*made);
      grow();
      return true;
    }
  }
  // Another one was made meanwhile.
  made->file = {};
  auto removed = store_.remove(made->name);
  capacity_->give_back(bytes);
  return removed ? Result<bool>(true) : tl::unexpected(removed.error());
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
  capacity_->give_back(spare->bytes);
}

Status SegmentPool::give_back(const std::string& name, Bytes bytes, std::optional<LogFile> file) {
  if (file && !capacity_->wanted_by_others()) {
    const std::string blank_name = next_name();
    const std::scoped_lock lock(mutex_);
    if (!making_ && !blank_ && bytes == next_bytes_ && store_.rename(name, blank_name)) {
      blank_ = Blank{blank_name, bytes, std::move(*file)};
      return {};
    }
  }
  file.reset();
  auto removed = store_.remove(name);
  capacity_->give_back(bytes);
  return removed;
}

}  // namespace forebay
