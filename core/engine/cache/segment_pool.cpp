#include "core/engine/cache/segment_pool.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <utility>

#include "core/storage/background_thread.hpp"

namespace forebay {

SegmentPool::SegmentPool(LogStore& store, Sizes sizes, bool ahead,
                         std::unique_ptr<ResourceHolder> capacity,
                         std::shared_ptr<SegmentReserve> reserve)
    : store_(store),
      sizes_{std::min(sizes.first, sizes.largest), sizes.largest},
      capacity_(std::move(capacity)),
      reserve_(std::move(reserve)),
      next_bytes_(sizes_.first) {
  if (!ahead) return;
  auto thread = try_background_thread([this] { work(); });
  if (!thread) return;
  worker_ = std::move(*thread);
  ahead_ = true;
}

SegmentPool::~SegmentPool() {
  {
    const std::scoped_lock lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  if (worker_.joinable()) worker_.join();
}

std::string SegmentPool::next_name() {
  const std::scoped_lock lock(mutex_);
  return next_name_locked();
}

std::string SegmentPool::next_name_locked() {
  return blank_prefix + std::to_string(next_number_++);
}

/// What the reserve holds is this process's too, and comes after what a log needs.
bool SegmentPool::take_capacity(Bytes bytes) {
  if (capacity_->take(bytes)) return true;
  return reserve_ != nullptr && reserve_->empty() && capacity_->take(bytes);
}

std::optional<SegmentPool::Blank> SegmentPool::reserved(const std::string& name, Bytes bytes) {
  if (reserve_ == nullptr) return std::nullopt;
  auto file = reserve_->take(store_, name, bytes);
  if (!file) return std::nullopt;
  return Blank{name, bytes, std::move(*file)};
}

bool SegmentPool::keep(Blank blank) {
  return reserve_ != nullptr && !capacity_->wanted_by_others() &&
         reserve_->keep(store_, blank.name, blank.bytes, std::move(blank.file));
}

Result<SegmentPool::Blank> SegmentPool::make(Bytes bytes) {
  std::string name = next_name();
  if (auto blank = reserved(name, bytes)) return std::move(*blank);
  auto file = ahead_ ? store_.create(name, bytes) : store_.lay_out(name, bytes);
  if (!file) {
    capacity_->give_back(bytes);
    return tl::unexpected(file.error());
  }
  return Blank{std::move(name), bytes, std::move(*file)};
}

/// With mutex_ held. The first size by powers of two, so that logs find what others left; the next
/// power at one and a half powers of all that was made, since programs write powers of two, behind
/// which the largest step would lie in vain. A log that has filled its share of the capacity is to
/// fill one segment while others are flushed; one that has many times its share, which it may while
/// nobody else wants it, is not to need more files than a process may have open.
void SegmentPool::made(const Blank& blank) {
  constexpr Bytes least_segments_of_a_share = 8;
  constexpr Bytes most_segments_of_a_log = 64;
  const Bytes part = blank.file.zeroed ? 12 : 3;
  all_made_ += blank.bytes;
  const Bytes most =
      std::min(all_made_ / part, std::max(capacity_->share() / least_segments_of_a_share,
                                          capacity_->held() / most_segments_of_a_log));
  const auto firsts = static_cast<std::uint64_t>(most / sizes_.first);
  const Bytes next = sizes_.first * static_cast<Bytes>(std::bit_floor(firsts));
  next_bytes_ = std::clamp(next, sizes_.first, sizes_.largest);
}

void SegmentPool::prepare() {
  if (!ahead_) return;
  {
    const std::scoped_lock lock(mutex_);
    if (stopping_ || making_ || blank_ || !take_capacity(next_bytes_)) return;
    blank_ = reserved(next_name_locked(), next_bytes_);
    if (blank_) {
      made(*blank_);
      return;
    }
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
    auto blank = make(bytes);
    lock.lock();
    making_ = false;
    // Where it failed, whoever needs one tries again and gets the error.
    if (blank) {
      blank_ = std::move(*blank);
      made(*blank_);
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
  if (!take_capacity(bytes)) return std::nullopt;
  auto blank = make(bytes);
  if (!blank) return tl::unexpected(blank.error());
  const std::scoped_lock lock(mutex_);
  made(*blank);
  return std::optional(std::move(*blank));
}

Result<bool> SegmentPool::wait(std::chrono::milliseconds patience) {
  Bytes bytes = 0;
  {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return !making_; });
    if (blank_) return true;
    bytes = next_bytes_;
  }
  if (!take_capacity(bytes) && !capacity_->take(bytes, patience)) return false;
  auto blank = make(bytes);
  if (!blank) return tl::unexpected(blank.error());
  {
    const std::scoped_lock lock(mutex_);
    if (!blank_) {
      blank_ = std::move(*blank);
      made(*blank_);
      return true;
    }
  }
  // Another one was made meanwhile.
  blank->file = {};
  auto removed = store_.remove(blank->name);
  capacity_->give_back(bytes);
  return removed ? Result<bool>(true) : tl::unexpected(removed.error());
}

void SegmentPool::close() {
  std::unique_lock lock(mutex_);
  stopping_ = true;
  changed_.notify_all();
  changed_.wait(lock, [this] { return !making_; });
  if (blank_) (void)keep(std::move(*blank_));  // What is not kept goes with the store.
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
  if (file && keep({name, bytes, std::move(*file)})) {
    capacity_->give_back(bytes);
    return {};
  }
  file.reset();
  auto removed = store_.remove(name);
  capacity_->give_back(bytes);
  return removed;
}

}  // namespace forebay
