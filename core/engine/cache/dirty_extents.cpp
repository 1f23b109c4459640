#include "core/engine/cache/dirty_extents.hpp"

#include <algorithm>
#include <limits>
#include <utility>

namespace forebay {

DirtyExtents::DirtyExtents(FlushQueue queue, bool background, std::chrono::milliseconds lull,
                           std::chrono::milliseconds longest_burst)
    : queue_(std::move(queue)),
      background_(background),
      lull_(lull),
      longest_burst_(longest_burst) {}

/// Anything is left of what begin_drain() was called for.
bool DirtyExtents::is_begun() const {
  const auto lowest = map_.lowest_order();
  return lowest && *lowest <= std::min(begun_, committed_);
}

bool DirtyExtents::handing_out() const {
  const bool wanted = (background_ && !in_burst()) || !awaited_.empty() || is_begun();
  return pauses_ == 0 && !failure_ && wanted && !queue_.empty();
}

/// Up to which order pieces may be written now.
std::uint64_t DirtyExtents::limit() const {
  const std::uint64_t awaited = awaited_.empty() ? 0 : *awaited_.rbegin();
  return std::max(committed_, awaited);
}

/// Puts a unit with dirty pieces where it belongs.
void DirtyExtents::enqueue(std::int64_t unit) {
  if (under_way_.contains(unit)) return;  // done() looks again.
  const auto pieces = map_.overlapping(queue_.extent_of(unit));
  if (pieces.empty()) return;
  const bool may_go = std::ranges::any_of(
      pieces, [this](const DirtyMap::Piece& piece) { return piece.order <= limit(); });
  if (may_go) {
    queue_.ready(unit);
    work_.notify_one();
  } else {
    queue_.hold(unit);
  }
}

void DirtyExtents::note_superseded(std::uint64_t order,
                                   const std::vector<std::uint64_t>& superseded) {
  if (superseded.empty() || order <= committed_) return;
  std::uint64_t oldest = std::numeric_limits<std::uint64_t>::max();
  for (const std::uint64_t below : superseded) {
    const auto further = oldest_below_.find(below);
    oldest = std::min(oldest, further == oldest_below_.end() ? below : further->second);
  }
  const auto noted = oldest_below_.try_emplace(order, oldest).first;
  noted->second = std::min(noted->second, oldest);
}

void DirtyExtents::add(Extent extent, std::uint64_t order, const LogPlace& place) {
  if (extent.empty()) return;
  const std::scoped_lock lock(mutex_);
  if (lull_.count() > 0 && map_.bytes() == 0) {
    may_begin_burst([this] { latest_end_ = Clock::now() + longest_burst_; });
  }
  const auto superseded = map_.insert(extent, order, place);
  note_superseded(order, superseded);
  // Who waits for the older ones waits for nothing any more.
  if (!superseded.empty()) settled_.notify_all();
  last_order_ = std::max(last_order_, order);
  totals_.added += extent.length;
  const std::int64_t last = queue_.unit_of(extent.end() - 1);
  for (std::int64_t unit = queue_.unit_of(extent.offset); unit <= last; ++unit) {
    // Whether anything older in the unit may go was settled when that was added.
    if (under_way_.contains(unit)) continue;
    if (order <= limit()) {
      queue_.ready(unit);
      work_.notify_one();
    } else {
      queue_.hold(unit);
    }
  }
}

void DirtyExtents::commit(std::uint64_t order) {
  const std::scoped_lock lock(mutex_);
  committed_ = std::max(committed_, order);
  last_order_ = std::max(last_order_, order);
  oldest_below_.erase(oldest_below_.begin(), oldest_below_.upper_bound(order));
  queue_.release_held();
  may_begin_burst([this] { lull_end_ = Clock::now() + lull_; });
  if (handing_out()) work_.notify_all();
}

void DirtyExtents::begin_access() {
  const std::scoped_lock lock(mutex_);
  may_begin_burst([this] { ++accesses_; });
}

void DirtyExtents::end_access() {
  const std::scoped_lock lock(mutex_);
  --accesses_;
  lull_end_ = Clock::now() + lull_;
}

/// Nothing is flushed in the background before.
DirtyExtents::Clock::time_point DirtyExtents::burst_end() const {
  return accesses_ > 0 ? latest_end_ : std::min(lull_end_, latest_end_);
}

template <typename Change>
void DirtyExtents::may_begin_burst(Change change) {
  const bool before = in_burst();
  change();
  if (!before && in_burst()) work_.notify_all();
}

std::optional<Error> DirtyExtents::take_failure() {
  const std::scoped_lock lock(mutex_);
  if (!failure_) return {};
  std::optional<Error> failure = std::exchange(failure_, std::nullopt);
  work_.notify_all();
  if (failure_told_) return {};
  return failure;
}

std::vector<DirtyMap::Piece> DirtyExtents::overlapping(Extent extent) const {
  const std::scoped_lock lock(mutex_);
  return map_.overlapping(extent);
}

bool DirtyExtents::any(Extent extent) const {
  const std::scoped_lock lock(mutex_);
  return map_.any(extent);
}

Bytes DirtyExtents::end() const {
  const std::scoped_lock lock(mutex_);
  return map_.end();
}

DirtyExtents::Totals DirtyExtents::totals() const {
  const std::scoped_lock lock(mutex_);
  Totals totals = totals_;
  totals.dirty = map_.bytes();
  return totals;
}

/// The next unit in which anything may be written, if there is one.
std::optional<DirtyExtents::Work> DirtyExtents::next() {
  while (handing_out()) {
    const auto unit = queue_.pop();
    if (!unit) break;
    Work work{*unit, map_.overlapping(queue_.extent_of(*unit))};
    const bool some_stay =
        std::erase_if(work.pieces, [most = limit()](const DirtyMap::Piece& piece) {
          return piece.order > most;
        }) > 0;
    if (!work.pieces.empty()) {
      under_way_.insert(*unit);
      return work;
    }
    if (some_stay) queue_.hold(*unit);
  }
  return {};
}

std::optional<DirtyExtents::Work> DirtyExtents::take(std::chrono::milliseconds patience) {
  const auto deadline = Clock::now() + patience;
  std::unique_lock lock(mutex_);
  for (;;) {
    if (stopping_) return {};
    // Nobody calls at the end of a burst, nor where an access ends and a lull begins.
    auto until = deadline;
    if (background_ && in_burst()) {
      until = std::min({deadline, burst_end(), Clock::now() + lull_});
    }
    if (auto work = next()) return work;
    if (Clock::now() >= deadline) return {};
    work_.wait_until(lock, until);
  }
}

/// A write of so many bytes has ended.
void DirtyExtents::note_pace(Bytes written) {
  const auto now = Clock::now();
  if (pressed_since_) {
    totals_.pressed += written;
    totals_.pressed_ns +=
        std::chrono::duration_cast<std::chrono::nanoseconds>(now - *pressed_since_).count();
  }
  pressed_since_ = handing_out() ? std::optional(now) : std::nullopt;
}

void DirtyExtents::done(Work work, const Status& written) {
  {
    const std::scoped_lock lock(mutex_);
    under_way_.erase(work.unit);
    Bytes bytes = 0;
    if (written) {
      for (const DirtyMap::Piece& piece : work.pieces) {
        map_.erase(piece.extent, piece.order);
        note_superseded(piece.order, written_.insert(piece.extent, piece.order, piece.place));
        bytes += piece.extent.length;
      }
      totals_.written += bytes;
    } else if (!failure_) {
      failure_ = written.error();
      failure_told_ = false;
    }
    enqueue(work.unit);
    note_pace(bytes);
    // Who finds all settled finds no segment in use by what was settled.
    work.pieces.clear();
    settled_.notify_all();
  }
}

Status DirtyExtents::drain(std::uint64_t order) {
  std::unique_lock lock(mutex_);
  failure_.reset();
  const auto mine = awaited_.insert(order);
  if (order > committed_) queue_.release_held();
  work_.notify_all();
  settled_.wait(lock, [&] {
    const auto lowest = map_.lowest_order();
    return failure_ || !lowest || *lowest > order;
  });
  awaited_.erase(mine);
  if (!failure_) return {};
  failure_told_ = true;
  return tl::unexpected(*failure_);
}

Status DirtyExtents::drain(Extent extent) {
  std::uint64_t newest = 0;
  for (const DirtyMap::Piece& piece : overlapping(extent)) newest = std::max(newest, piece.order);
  return newest == 0 ? Status{} : drain(newest);
}

void DirtyExtents::begin_drain(std::uint64_t order) {
  const std::scoped_lock lock(mutex_);
  begun_ = std::max(begun_, order);
  work_.notify_all();
}

std::uint64_t DirtyExtents::last_order() const {
  const std::scoped_lock lock(mutex_);
  return last_order_;
}

std::uint64_t DirtyExtents::flushed_through() const {
  const std::uint64_t lowest = map_.lowest_order().value_or(last_order_ + 1);
  std::uint64_t through = lowest - 1;
  // What lies over others and is itself in the file has taken their place for good.
  for (auto above = oldest_below_.lower_bound(lowest); above != oldest_below_.end(); ++above) {
    through = std::min(through, above->second - 1);
  }
  return through;
}

std::uint64_t DirtyExtents::begin_sync() {
  const std::scoped_lock lock(mutex_);
  syncing_ = std::exchange(written_, {});
  return flushed_through();
}

void DirtyExtents::end_sync(bool durable) {
  const std::scoped_lock lock(mutex_);
  const DirtyMap synced = std::exchange(syncing_, {});
  if (durable) return;
  // What was written meanwhile is newer, and no more durable.
  for (const DirtyMap& lost : {synced, std::exchange(written_, {})}) {
    for (const DirtyMap::Piece& piece : lost.overlapping({0, lost.end()})) {
      for (const DirtyMap::Piece& above : map_.overlapping(piece.extent)) {
        if (above.order > piece.order) note_superseded(above.order, {piece.order});
      }
      note_superseded(piece.order, map_.insert(piece.extent, piece.order, piece.place));
      const std::int64_t last = queue_.unit_of(piece.extent.end() - 1);
      for (std::int64_t unit = queue_.unit_of(piece.extent.offset); unit <= last; ++unit) {
        enqueue(unit);
      }
    }
  }
}

bool DirtyExtents::stopping() const {
  const std::scoped_lock lock(mutex_);
  return stopping_;
}

void DirtyExtents::set_background(bool background) {
  const std::scoped_lock lock(mutex_);
  background_ = background;
  work_.notify_all();
}

void DirtyExtents::discard() {
  const std::scoped_lock lock(mutex_);
  for (DirtyMap* map : {&map_, &written_, &syncing_}) map->clear();
  queue_.clear();
  oldest_below_.clear();
  failure_.reset();
  settled_.notify_all();
}

void DirtyExtents::stop() {
  const std::scoped_lock lock(mutex_);
  stopping_ = true;
  work_.notify_all();
}

DirtyExtents::Pause::Pause(DirtyExtents& extents) : extents_(extents) {
  std::unique_lock lock(extents_.mutex_);
  ++extents_.pauses_;
  extents_.settled_.wait(lock, [this] { return extents_.under_way_.empty(); });
}

DirtyExtents::Pause::~Pause() {
  const std::scoped_lock lock(extents_.mutex_);
  --extents_.pauses_;
  extents_.work_.notify_all();
}

void DirtyExtents::Pause::cut(Bytes size) {
  const std::scoped_lock lock(extents_.mutex_);
  for (DirtyMap* map : {&extents_.map_, &extents_.written_, &extents_.syncing_}) map->cut(size);
  extents_.settled_.notify_all();
}

}  // namespace forebay
