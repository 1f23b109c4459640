#include "core/engine/prefetch/prefetched_file.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

namespace forebay {
namespace {

/// A reader waits this long for what is on its way, then it reads for itself: whoever fetches may
/// have died or may be stopped, and must not hold the program up.
constexpr std::chrono::seconds longest_wait{1};
constexpr std::int64_t stall_ns = 1'000'000;

/// Reads foreseen at once for a strided pattern; then the pattern is asked again.
constexpr std::size_t most_foreseen = 1024;

/// Pieces found in the page cache that the plan goes past before the program has read them.
constexpr std::size_t most_resident = 64;

std::int64_t steady_ns() {
  return std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count();
}

bool contains(Extent outer, Extent inner) {
  return inner.offset >= outer.offset && inner.end() <= outer.end();
}

Bytes most_ahead(const BlockBuffer& buffer, const ReadIntent& intent) {
  return buffer.block() * std::min(buffer.blocks(), intent.ahead.value_or(buffer.blocks()));
}

}  // namespace

PrefetchedFile::PrefetchedFile(std::string path, std::unique_ptr<FetchSource> source,
                               ReadIntent intent, BlockBuffer buffer, std::function<void()> wake)
    : path_(std::move(path)),
      intent_(std::move(intent)),
      source_(std::move(source)),
      wake_(std::move(wake)),
      buffer_(std::move(buffer)),
      window_(buffer_.block(), most_ahead(buffer_, intent_)) {}

void PrefetchedFile::start(const FileVersion& version, std::int64_t now_ns) {
  const std::lock_guard lock(mutex_);
  if (state_ == State::unsettled) begin(version, now_ns);
}

void PrefetchedFile::begin(const FileVersion& version, std::int64_t now_ns) {
  if (!is_settled(version, now_ns)) return;
  version_ = version;
  state_ = State::active;
  plan_ = FetchPlan(intent_.willneed, version.size, buffer_.block());
  figures_.bytes_planned = plan_.bytes();
  figures_.extents_outside = static_cast<std::int64_t>(plan_.outside());
}

void PrefetchedFile::halt(const char* why) {
  if (state_ == State::stopped) return;
  state_ = State::stopped;
  figures_.stopped = why;
  plan_ = {};
  upcoming_.reset();
  release_ready();
  arrived_.notify_all();
}

void PrefetchedFile::stop(const char* why) {
  const std::lock_guard lock(mutex_);
  halt(why);
}

void PrefetchedFile::close_source() {
  const std::lock_guard lock(mutex_);
  source_.reset();
}

PrefetchedFile::Served PrefetchedFile::serve(std::span<std::byte> into, Bytes offset,
                                             const FileVersion& version, std::int64_t now_ns) {
  std::unique_lock lock(mutex_);
  const Extent read{offset, static_cast<Bytes>(into.size())};
  ++figures_.reads;
  figures_.bytes_asked += read.length;
  if (state_ == State::unsettled) begin(version, now_ns);
  if (state_ == State::active && version != version_) halt("the file was changed");
  if (state_ != State::active || read.empty()) return {0, false, state_ == State::stopped};
  const Bytes served = copy(into, offset, lock);
  if (served == read.length) ++figures_.reads_served;
  figures_.bytes_served += served;
  if (state_ != State::active) return {served, false, true};
  pattern_.observe(read);
  judge(read, served);
  skip_what_was_read(read);
  follow_pattern();
  return {served, wants_request(), false};
}

PrefetchedFile::Piece PrefetchedFile::holder_of(Bytes offset) {
  return std::ranges::find_if(live_, [&](const Live& live) {
    return offset >= live.held.offset && offset < live.held.end();
  });
}

/// Whether the piece at `offset` is the next to be fetched, at once. A read by the kernel would
/// bring the kernel's read-ahead with it, which is why it is better to wait for our own. Releases
/// what lies behind.
bool PrefetchedFile::begins_now(Bytes offset) {
  const auto next = next_piece();
  return next && contains(*next, {offset, 1}) && wake_ != nullptr && wants_request();
}

Bytes PrefetchedFile::copy(std::span<std::byte> into, Bytes offset,
                           std::unique_lock<std::mutex>& lock) {
  const auto deadline = std::chrono::steady_clock::now() + longest_wait;
  const Bytes end = offset + static_cast<Bytes>(into.size());
  std::int64_t waited = 0;
  Bytes at = offset;
  while (at < end) {
    const Piece piece = holder_of(at);
    const bool is_live = piece != live_.end();
    if (!is_live && !begins_now(at)) break;
    if (!is_live) wake_();
    if (!is_live || !piece->ready) {
      const std::int64_t start = steady_ns();
      const auto status = arrived_.wait_until(lock, deadline);
      waited += steady_ns() - start;
      if (status == std::cv_status::timeout || state_ != State::active) break;
      continue;  // The pieces may be others now.
    }
    const Extent wanted = piece->wanted;
    const Bytes count = std::min(end, piece->held.end()) - at;
    std::memcpy(into.data() + (at - offset),
                buffer_[piece->block].data() + (at - piece->held.offset),
                static_cast<std::size_t>(count));
    const Extent copied = intersect({at, count}, wanted);
    piece->served += copied.length;
    if (!copied.empty()) front_ = std::max(front_, piece->index);
    at += count;
    const bool to_its_end = !copied.empty() && copied.end() == wanted.end();
    if (to_its_end && piece->served >= wanted.length) release(piece);
  }
  figures_.waited_ns += waited;
  if (waited > stall_ns) ++figures_.stalls;
  return at - offset;
}

/// Compares a read with what was foreseen.
void PrefetchedFile::judge(Extent read, Bytes served) {
  const auto next = next_piece();
  if (!next && live_.empty() && served == 0) return;  // Nothing was.
  if (take_resident(read)) return;
  const bool foreseen = served > 0 || (next && !intersect(*next, read).empty());
  const bool strays = !foreseen && !was_right_ && !plan_.covers(read.offset);
  if (strays && ++strays_ <= most_strays) return;
  confidence_.observe(foreseen);
  if (foreseen) {
    misses_ = 0;
    was_right_ = true;
    window_.confirm();
    return;
  }
  ++misses_;
  if (confidence_.lost()) {
    give_up_plan();
  } else if (misses_ >= misses_before_seeking && !by_pattern_ && plan_.seek(read.offset)) {
    upcoming_.reset();
    front_ = next_index_;  // What is there lies behind now.
    misses_ = 0;
  }
}

/// Whether `read` is of what was left out for the page cache having it; what was left out before
/// that lies behind.
bool PrefetchedFile::take_resident(Extent read) {
  const auto found = std::ranges::find_if(
      resident_, [&](const Extent& piece) { return !intersect(piece, read).empty(); });
  if (found == resident_.end()) return false;
  const bool to_its_end = read.end() >= found->end();
  resident_.erase(resident_.begin(), found + (to_its_end ? 1 : 0));
  return true;
}

/// The program was faster than we.
void PrefetchedFile::skip_what_was_read(Extent read) {
  while (const auto next = next_piece()) {
    if (contains(read, *next)) {
      upcoming_.reset();
      continue;
    }
    if (next->offset >= read.offset && next->offset < read.end()) {
      upcoming_ = Extent{read.end(), next->end() - read.end()};
    }
    return;
  }
}

void PrefetchedFile::follow_pattern() {
  // While something left to the page cache lies ahead, that is the way.
  if (next_piece() || !resident_.empty()) return;
  std::vector<Extent> foreseen;
  for (Extent extent : pattern_.expected(version_.size, most_foreseen)) {
    for (auto held = holder_of(extent.offset); !extent.empty() && held != live_.end();
         held = holder_of(extent.offset)) {
      const Bytes from = held->held.end();
      extent = {from, extent.end() - from};
    }
    if (!extent.empty()) foreseen.push_back(extent);
  }
  if (foreseen.empty()) return;
  plan_ = FetchPlan(foreseen, version_.size, buffer_.block());
  by_pattern_ = true;
  was_right_ = true;  // What it was taken from was read.
}

void PrefetchedFile::give_up_plan() {
  ++figures_.plans_given_up;
  if (by_pattern_) pattern_.disappoint();
  by_pattern_ = false;
  plan_ = {};
  upcoming_.reset();
  resident_.clear();
  confidence_ = {};
  misses_ = 0;
  window_.close();
  release_ready();
  front_ = next_index_;
}

std::optional<Extent> PrefetchedFile::next_piece() {
  if (!upcoming_) upcoming_ = plan_.next();
  return upcoming_;
}

/// Whether one more piece may have a block. What lies behind the program goes first.
bool PrefetchedFile::make_room() {
  const auto fits = [&] {
    Bytes held = 0;
    for (const Live& live : live_) held += live.held.length;
    return static_cast<int>(live_.size()) < buffer_.blocks() &&
           held + buffer_.block() <= window_.bytes();
  };
  if (fits()) return true;
  const auto behind = std::ranges::find_if(
      live_, [&](const Live& live) { return live.ready && live.index < front_; });
  if (behind == live_.end()) return false;
  release(behind);
  return fits();
}

/// Whether next_request() would have something to do. Where the plan runs ahead through the page
/// cache it need not be asked for every read.
bool PrefetchedFile::wants_request() {
  return next_piece().has_value() && resident_.size() <= most_resident / 2 && make_room();
}

std::optional<ReadRequest> PrefetchedFile::next_request() {
  const std::lock_guard lock(mutex_);
  if (state_ != State::active) return std::nullopt;
  while (state_ == State::active) {
    const auto piece = next_piece();
    if (!piece) break;
    const Extent transfer = transfer_of(*piece);
    const Extent held = intersect(transfer, {0, version_.size});
    if (source_->resident(held) >= held.length) {
      if (resident_.size() == most_resident) return std::nullopt;
      resident_.push_back(*piece);
      figures_.bytes_resident += piece->length;
      upcoming_.reset();
      arrived_.notify_all();  // Who waited for it to begin reads for itself.
      const bool enough = resident_.size() == most_resident || (!next_piece() && !by_pattern_);
      if (enough && figures_.requests == 0) halt("the page cache had it");
      continue;
    }
    if (!make_room()) return std::nullopt;
    const auto block = buffer_.take();
    if (!block) return std::nullopt;
    upcoming_.reset();
    live_.push_back({next_index_, *piece, held, *block, false, 0, window_.depart(steady_ns())});
    ++figures_.requests;
    return ReadRequest{next_index_++, source_.get(),
                       buffer_[*block].first(static_cast<std::size_t>(transfer.length)),
                       transfer.offset};
  }
  return std::nullopt;
}

void PrefetchedFile::ended(const ReadOutcome& outcome) {
  // Also tells whether our own descriptor is still what it was: a program may close descriptors
  // that it knows nothing of.
  const auto version = source_->version();
  const std::lock_guard lock(mutex_);
  const auto piece = std::ranges::find(live_, outcome.tag, &Live::index);
  if (piece == live_.end()) return;
  figures_.bytes_fetched += outcome.moved;
  if (state_ != State::active) {
    release(piece);
  } else if (outcome.os_errno != 0 || outcome.moved < piece->held.length) {
    // The program learns of an error if it asks for these bytes, from the file itself.
    ++figures_.requests_failed;
    release(piece);
  } else {
    window_.arrive(piece->departure, outcome.moved, steady_ns());
    piece->ready = true;
    if (version != version_) halt("the file was changed");
  }
  arrived_.notify_all();
}

void PrefetchedFile::release(const Piece& piece) {
  if (piece->ready && piece->served == 0) figures_.bytes_unused += piece->held.length;
  buffer_.give_back(piece->block);
  live_.erase(piece);
}

/// What is on its way still writes into its block, and is released when it has ended.
void PrefetchedFile::release_ready() {
  for (auto piece = live_.begin(); piece != live_.end();) {
    if (!piece->ready) {
      ++piece;
      continue;
    }
    const auto place = piece - live_.begin();
    release(piece);
    piece = live_.begin() + place;
  }
}

PrefetchFigures PrefetchedFile::figures() const {
  const std::lock_guard lock(mutex_);
  PrefetchFigures result = figures_;
  for (const Live& live : live_) {
    if (live.ready && live.served == 0) result.bytes_unused += live.held.length;
  }
  result.memory_peak = buffer_.peak_bytes();
  result.latency_ns = window_.latency_ns();
  result.bytes_per_second = window_.bytes_per_second();
  return result;
}

}  // namespace forebay
