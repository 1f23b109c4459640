#include "core/engine/prefetch/prefetched_file.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

#include "core/engine/prefetch/piece_residence.hpp"
#include "core/engine/prefetch/steady_time.hpp"

namespace forebay {
namespace {

/// Reads foreseen at once for a strided pattern; then the pattern is asked again.
constexpr std::size_t most_foreseen = 1024;

/// Pieces found in the page cache that the plan goes past before the program has read them.
constexpr std::size_t most_resident = 64;

Bytes most_ahead(const FetchBuffer& buffer, Bytes block, const ReadIntent& intent) {
  const Bytes blocks = buffer.bytes() / block;
  return block * std::min<Bytes>(blocks, intent.ahead.value_or(blocks));
}

/// An opening holds as many pieces as its memory would hold of this length, or of its block if that
/// is shorter: who looks at a file and closes it has not much of it fetched in short pieces.
constexpr Bytes length_counted = 256 * KiB;

}  // namespace

PrefetchedFile::PrefetchedFile(std::string path, std::unique_ptr<FetchSource> source,
                               ReadIntent intent, FetchBuffer buffer, Bytes block,
                               std::function<void()> wake, std::shared_ptr<RequestMemory> memory)
    : path_(std::move(path)),
      intent_(std::move(intent)),
      source_(std::move(source)),
      wake_(std::move(wake)),
      memory_(std::move(memory)),
      buffer_(std::move(buffer)),
      trial_(*source_),
      window_(block, most_ahead(buffer_, block, intent_)),
      most_live_(static_cast<std::size_t>(buffer_.bytes() / std::min(block, length_counted))),
      tuner_({block, std::nullopt}, RequestTuner::most_joined_in(buffer_.bytes(), block),
             intent_.gap.value_or(GapChoice{}).bytes) {}

Bytes PrefetchedFile::Live::unused() const {
  Bytes bytes = held.length - used.overlap(held);
  for (const Extent& gap : wanted.between()) bytes -= gap.length - used.overlap(gap);
  return bytes;
}

void PrefetchedFile::start(const FileVersion& version, std::int64_t now_ns) {
  const std::lock_guard lock(mutex_);
  if (state_ == State::unsettled) begin(version, now_ns);
}

void PrefetchedFile::begin(const FileVersion& version, std::int64_t now_ns) {
  if (!is_settled(version, now_ns)) return;
  version_ = version;
  state_ = State::active;
  plan_ = FetchPlan(intent_.willneed, version.size);
  declared_ = plan_.declared();
  figures_.bytes_planned = plan_.bytes();
  figures_.extents_outside = static_cast<std::int64_t>(plan_.outside());
  memory_->teach(version_.id.device, tuner_, plan_);
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

void PrefetchedFile::end_before(Bytes offset) {
  const std::lock_guard lock(mutex_);
  if (state_ == State::active && !by_pattern_) is_cut_ |= plan_.end_before(offset);
}

/// Another opening was to read there; but it is this one that came.
void PrefetchedFile::restore_plan(Extent read) {
  if (next_piece() || declared_.overlap(read) == 0 || holder_of(read.offset) != live_.end()) return;
  is_cut_ = false;
  FetchPlan whole(intent_.willneed, version_.size);
  if (!whole.seek(read)) return;
  by_pattern_ = false;
  front_.go_to(plan_.beyond());
  replace_plan(std::move(whole));
}

void PrefetchedFile::stop(const char* why) {
  const std::lock_guard lock(mutex_);
  halt(why);
}

void PrefetchedFile::close_source() {
  const std::lock_guard lock(mutex_);
  source_.reset();
}

ServedFile::Served PrefetchedFile::serve(std::span<std::byte> into, Bytes offset,
                                         const FileVersion& version, std::int64_t now_ns) {
  std::unique_lock lock(mutex_);
  const Extent read{offset, static_cast<Bytes>(into.size())};
  ++figures_.reads;
  figures_.bytes_asked += read.length;
  if (state_ == State::unsettled) begin(version, now_ns);
  const Bytes declared = declared_.overlap(read);
  figures_.bytes_asked_declared += declared;
  if (state_ == State::active && version != version_) halt("the file was changed");
  if (state_ != State::active || read.empty()) return {.over = state_ == State::stopped};
  if (is_cut_) restore_plan(read);
  const Bytes served = copy(into, offset, lock);
  if (served == read.length) ++figures_.reads_served;
  figures_.bytes_served += served;
  if (state_ != State::active) return {.bytes = served, .over = true};
  pattern_.observe(read);
  judge(read, served);
  skip_what_was_read(read);
  // What was declared may end here: it alone says what will be read, as long as it is right.
  if (by_pattern_ || served < read.length) follow_pattern();
  return {.bytes = served,
          .wanted = intent_.willneed.empty() ? read.length : declared,
          .room = wants_request(),
          .asks = served == 0 && trial_.is_answered_by(read)};
}

void PrefetchedFile::took(Bytes bytes, std::int64_t ns) {
  const std::lock_guard lock(mutex_);
  if (memory_->took(version_.id.device, bytes, ns)) halt("the page cache had it");
}

PrefetchedFile::Piece PrefetchedFile::holder_of(Bytes offset) {
  return std::ranges::find_if(live_, [&](const Live& live) {
    return offset >= live.held.offset && offset < live.held.end();
  });
}

/// Whether the piece with the first byte of `read` is the next to be fetched, at once. A read by
/// the kernel would bring the kernel's read-ahead with it, which is why it is better to wait for
/// our own. Releases what lies behind. `passes`: as ReadingFront has it, of `read`.
bool PrefetchedFile::begins_now(Extent read, std::optional<bool>& passes) {
  const auto& next = next_piece();
  const bool is_next = next && next->touches({read.offset, 1});
  const auto places = is_next ? next->places_of(read) : std::nullopt;
  if (!places) return false;
  if (!passes) passes = front_.begin_read(places->first);
  if (wake_ != nullptr && wants_request()) return true;
  front_.read_to(places->end, *passes);  // By the kernel.
  return false;
}

Bytes PrefetchedFile::copy(std::span<std::byte> into, Bytes offset,
                           std::unique_lock<std::mutex>& lock) {
  auto deadline = not_waiting;
  const Bytes end = offset + static_cast<Bytes>(into.size());
  std::int64_t waited = 0;
  // What has no place in the plan does not show how far the program is.
  const bool is_planned = is_of_plan({offset, end - offset});
  std::optional<bool> passes;
  Bytes at = offset;
  while (at < end) {
    const Piece piece = holder_of(at);
    const bool is_live = piece != live_.end();
    if (!is_live && (!is_planned || !begins_now({at, end - at}, passes))) break;
    if (!is_live) wake_();
    if (!is_live || !piece->ready) {
      if (deadline == not_waiting) deadline = std::chrono::steady_clock::now() + longest_wait;
      const std::int64_t start = steady_ns();
      const auto status = arrived_.wait_until(lock, deadline);
      waited += steady_ns() - start;
      if (status == std::cv_status::timeout) is_slow(deadline);
      if (status == std::cv_status::timeout || state_ != State::active) break;
      continue;  // The pieces may be others now.
    }
    const Bytes count = std::min(end, piece->held.end()) - at;
    const auto held = buffer_.at(piece->memory, piece->held.length);
    std::memcpy(into.data() + (at - offset), held.data() + (at - piece->held.offset),
                static_cast<std::size_t>(count));
    piece->used.add({at, count});
    bool to_its_end = false;
    for (const auto& part : piece->wanted.parts()) {
      const Extent copied = intersect({at, count}, part.extent);
      if (copied.empty()) continue;
      piece->served += copied.length;
      if (copied.end() == part.extent.end()) to_its_end = true;
    }
    if (const auto places = piece->wanted.places_of({at, count}); places && is_planned) {
      if (!passes) passes = front_.begin_read(places->first);
      front_.read_to(places->end, *passes);
    }
    at += count;
    deadline = not_waiting;
    if (to_its_end && piece->served >= piece->wanted.needed()) release(piece);
  }
  figures_.waited_ns += waited;
  if (waited > stall_ns) ++figures_.stalls;
  return at - offset;
}

/// Whether a byte of `read` has a place in the order of reading. What lies between neighbours that
/// are fetched as one has none: an index may, that is read at any time.
bool PrefetchedFile::is_of_plan(Extent read) const {
  return by_pattern_ || declared_.overlap(read) > 0;
}

/// Nothing came until `deadline` for as long as a read may wait. If that goes on, whatever fetches
/// does so no more, and each read would wait in vain. Readers that wait at the same time wait once.
void PrefetchedFile::is_slow(std::chrono::steady_clock::time_point deadline) {
  if (deadline - longest_wait < last_in_vain_) return;
  last_in_vain_ = std::chrono::steady_clock::now();
  if (++waits_in_vain_ >= most_waits_in_vain) halt("what is fetched does not come");
}

/// Compares a read with what was foreseen.
void PrefetchedFile::judge(Extent read, Bytes served) {
  const auto& next = next_piece();
  if (take_resident(read)) return;
  if (!next && live_.empty() && served == 0) return;  // Nothing was.
  const bool foreseen = served > 0 || (next && next->touches(read));
  const bool strays = !foreseen && !was_right_ && !is_of_plan(read);
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
  } else if (misses_ >= misses_before_seeking && !by_pattern_ && is_of_plan(read)) {
    const ReadingPlace behind = plan_.beyond();
    if (!plan_.seek(read)) return;
    upcoming_.reset();
    front_.go_to(behind);  // What is there lies behind now.
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
  for (;;) {
    auto& next = next_piece();
    if (!next) return;
    next->take_out(read);
    if (!next->empty()) return;
    next.reset();
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
  replace_plan(FetchPlan(foreseen, version_.size));
  by_pattern_ = true;
  was_right_ = true;  // What it was taken from was read.
}

void PrefetchedFile::give_up_plan() {
  ++figures_.plans_given_up;
  if (by_pattern_) pattern_.disappoint();
  by_pattern_ = false;
  front_.go_to(plan_.beyond());
  replace_plan({});
  upcoming_.reset();
  resident_.clear();
  confidence_ = {};
  misses_ = 0;
  window_.close();
  release_ready();
}

void PrefetchedFile::replace_plan(FetchPlan plan) {
  plan.begin_after(plan_.beyond());
  plan_ = std::move(plan);
}

std::optional<FetchPiece>& PrefetchedFile::next_piece() {
  if (!upcoming_) {
    upcoming_ = plan_.next(tuner_.shape());
    trial_.next_piece();
  }
  return upcoming_;
}

/// Whether `piece` may have memory. What lies behind the program goes first.
bool PrefetchedFile::make_room(const FetchPiece& piece) {
  const Bytes length = transfer_of(piece.hull()).length;
  const Bytes window = tuner_.shape().gap ? window_.confirmed_bytes() : window_.bytes();
  const auto fits = [&] {
    Bytes held = 0;
    for (const Live& live : live_) held += live.held.length;
    const bool is_inside = live_.size() < most_live_ && held + length <= window;
    return (live_.empty() || is_inside) && buffer_.has(length);
  };
  const ReadingPlace here = front_.furthest();
  // Who reads where nothing more is there has to be believed to be there.
  const bool is_any_ahead =
      std::ranges::any_of(live_, [&](const Live& live) { return live.wanted.begin() >= here; });
  const ReadingPlace passed = is_any_ahead ? front_.passed() : here;
  while (!fits()) {
    const auto behind = std::ranges::find_if(
        live_, [&](const Live& live) { return live.ready && live.wanted.end() <= passed; });
    if (behind == live_.end()) return false;
    release(behind);
  }
  return true;
}

/// Whether next_request() would have something to do. Where the plan runs ahead through the page
/// cache it need not be asked for every read.
bool PrefetchedFile::wants_request() {
  const auto& next = next_piece();
  return next && resident_.size() <= most_resident / 2 && make_room(*next);
}

std::optional<ReadRequest> PrefetchedFile::next_request() {
  const std::lock_guard lock(mutex_);
  while (state_ == State::active) {
    auto& next = next_piece();
    if (!next) break;
    const Extent transfer = transfer_of(next->hull());
    const Extent held = intersect(transfer, {0, version_.size});
    if (resident_.size() >= most_resident) {
      if (source_->resident(held) >= held.length) return std::nullopt;
    } else if (leave_to_page_cache(*next, held)) {
      next.reset();
      arrived_.notify_all();  // Who waited for it to begin reads for itself.
      const bool enough = resident_.size() >= most_resident || (!next_piece() && !by_pattern_);
      if (enough && figures_.requests == 0 && trial_.is_told()) halt("the page cache had it");
      continue;
    }
    if (!make_room(*next)) return std::nullopt;
    const auto memory = buffer_.take(transfer.length);
    if (!memory) return std::nullopt;
    std::vector<Extent> absent;
    if (leaves_.load() != Leaves::nothing) absent = absent_parts(*source_, held);
    live_.push_back({next_tag_, *std::move(next), held, *memory, tuner_.trial(),
                     window_.depart(steady_ns()), std::move(absent)});
    next.reset();
    ++figures_.requests;
    return ReadRequest{next_tag_++, source_.get(), buffer_.at(*memory, transfer.length),
                       transfer.offset};
  }
  return std::nullopt;
}

/// Whether the page cache has all parts of a piece, or it is to show that.
bool PrefetchedFile::leave_to_page_cache(const FetchPiece& piece, Extent held) {
  if (!trial_.leaves(*source_, piece, held, *memory_, version_.id.device, figures_)) return false;
  for (const auto& part : piece.parts()) resident_.push_back(part.extent);
  figures_.bytes_resident += piece.needed();
  return true;
}

void PrefetchedFile::ended(const ReadOutcome& outcome) {
  // Also tells whether our own descriptor is still what it was: a program may close descriptors
  // that it knows nothing of.
  const auto version = source_->version();
  std::unique_lock lock(mutex_);
  waits_in_vain_ = 0;
  const auto piece = std::ranges::find(live_, outcome.tag, &Live::tag);
  if (piece == live_.end()) return;
  const std::vector<Extent> brought = std::move(piece->absent);
  const bool is_whole = outcome.os_errno == 0 && outcome.moved >= piece->held.length;
  figures_.bytes_fetched += outcome.moved;
  figures_.bytes_refetched += fetched_.add({piece->held.offset, outcome.moved});
  if (state_ != State::active || !is_whole) {
    // The program learns of an error if it asks for these bytes, from the file itself.
    if (state_ == State::active) ++figures_.requests_failed;
    figures_.bytes_unused += outcome.moved;
    release(piece);
  } else {
    const std::int64_t now = steady_ns();
    window_.arrive(piece->departure, outcome.moved, now);
    // Before that it is ourselves who hold the storage up.
    if (window_.is_open() && tuner_.arrive(piece->trial, outcome.moved, now, figures_.waited_ns)) {
      tuner_.decide(plan_.coming(RequestTuner::extents_to_weigh), plan_.left());
      memory_->learn(version_.id.device, tuner_);
    }
    figures_.bytes_between += piece->wanted.hull().length - piece->wanted.needed();
    piece->ready = true;
    if (version != version_) halt("the file was changed");
  }
  arrived_.notify_all();
  lock.unlock();
  drop_brought(brought, is_whole);
}

/// What a request brought into the page cache on its way: the buffer has it, and the budget is the
/// buffer's. What was there before is somebody else's.
void PrefetchedFile::drop_brought(const std::vector<Extent>& brought, bool is_whole) {
  for (const Extent& extent : brought) {
    if (leaves_.load() == Leaves::unknown && is_whole) {
      leaves_.store(source_->resident(extent) > 0 ? Leaves::pages : Leaves::nothing);
    }
    if (leaves_.load() == Leaves::pages) static_cast<void>(source_->advise(extent, false));
  }
}

void PrefetchedFile::count_cpu(std::int64_t nanoseconds) {
  const std::lock_guard lock(mutex_);
  figures_.helper_cpu_ns += nanoseconds;
}

void PrefetchedFile::release(const Piece& piece) {
  if (piece->ready) figures_.bytes_unused += piece->unused();
  buffer_.give_back(piece->memory);
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

bool PrefetchedFile::is_done() {
  const std::lock_guard lock(mutex_);
  if (state_ != State::active) return true;
  return figures_.plans_given_up == 0 && live_.empty() && !next_piece();
}

bool PrefetchedFile::foresees(Bytes offset) {
  const std::lock_guard lock(mutex_);
  if (state_ != State::active) return false;
  const Extent byte{offset, 1};
  const auto& next = next_piece();
  return holder_of(offset) != live_.end() || (next && next->touches(byte)) ||
         std::ranges::any_of(resident_,
                             [&](const Extent& piece) { return !intersect(piece, byte).empty(); });
}

PrefetchFigures PrefetchedFile::figures() const {
  const std::lock_guard lock(mutex_);
  PrefetchFigures result = figures_;
  for (const Live& live : live_) {
    if (live.ready) result.bytes_held += live.unused();
  }
  result.bytes_unused += result.bytes_held;
  result.gap_found = tuner_.gap_found();
  result.memory_peak = buffer_.peak_bytes();
  result.latency_ns = window_.latency_ns();
  result.bytes_per_second = window_.bytes_per_second();
  return result;
}

}  // namespace forebay
