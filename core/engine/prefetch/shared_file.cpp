#include "core/engine/prefetch/shared_file.hpp"

#include <algorithm>
#include <utility>

#include "core/engine/prefetch/piece_residence.hpp"
#include "core/engine/prefetch/plan_fingerprint.hpp"
#include "core/engine/prefetch/steady_time.hpp"
#include "core/storage/background_thread.hpp"

namespace forebay {
namespace {

/// Between two looks of one who waits at whether those whom it waits for go on.
constexpr std::chrono::milliseconds between_signs{20};

/// In a row that find a reader waiting for what cannot come before it has read something else.
constexpr int most_looks_for_itself = 2;

/// Pieces in a row: then the page cache has the file, and nothing needs to be fetched.
constexpr int most_resident_pieces = 64;

/// What is fetched so much of the window behind a reader is for others.
constexpr Bytes part_behind = 4;

/// With less than this part of the memory in one piece it is given up.
constexpr Bytes part_left = 2;

}  // namespace

std::unique_ptr<SharedWindow> SharedFile::window_for(const FileVersion& version,
                                                     const ReadIntent& intent, Bytes block,
                                                     Bytes bytes, std::int64_t now_ns, int group) {
  if (!is_settled(version, now_ns)) return nullptr;
  const FetchPlan plan(intent.willneed, version.size);
  if (plan.extents().empty()) return nullptr;
  const std::uint64_t plan_print =
      fingerprint(plan, block, bytes, intent.gap.value_or(GapChoice{}), group);
  return SharedWindow::join({version, plan_print, bytes});
}

SharedFile::SharedFile(std::string path, std::unique_ptr<FetchSource> source, ReadIntent intent,
                       std::unique_ptr<SharedWindow> window, const FileVersion& version,
                       Bytes block, const SharedWindow::Before& before, std::function<void()> wake,
                       std::shared_ptr<RequestMemory> memory)
    : path_(std::move(path)),
      intent_(std::move(intent)),
      source_(std::move(source)),
      version_(version),
      block_(block),
      before_(before),
      wake_(std::move(wake)),
      memory_(std::move(memory)),
      window_(std::move(window)),
      plan_(intent_.willneed, version.size),
      places_(plan_.extents()),
      tuner_({block, std::nullopt}, RequestTuner::most_joined_in(window_->bytes(), block),
             intent_.gap.value_or(GapChoice{}).bytes),
      measured_(block, window_->bytes()),
      trial_(*source_) {
  figures_.bytes_planned = plan_.bytes();
  figures_.extents_outside = static_cast<std::int64_t>(plan_.outside());
  if (!before.offset) return;
  first_place_ = 0;  // It has read already.
  begin({*before.offset, 1});
}

SharedFile::~SharedFile() { end_answering(); }

void SharedFile::finish(std::chrono::steady_clock::time_point deadline) {
  std::unique_lock lock(mutex_);
  halt("");
  while (!under_way_.empty()) {
    const auto left = deadline - std::chrono::steady_clock::now();
    if (left.count() <= 0) return;
    const std::uint32_t seen = window_->arrivals();
    lock.unlock();
    window_->wait(seen, left);
    lock.lock();
  }
  if (stops_answering(deadline)) window_->depart();
}

/// The thread itself may want the program's heap when it ends, which may not be waited for.
bool SharedFile::stops_answering(std::chrono::steady_clock::time_point deadline) {
  if (!answering_.joinable()) return true;
  is_ending_.store(true);
  window_->ring(window_->number());
  while (!has_answered_.load()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::yield();
  }
  return true;
}

void SharedFile::end_answering() {
  if (!answering_.joinable()) return;
  is_ending_.store(true);
  if (!has_answered_.load()) window_->ring(window_->number());
  answering_.join();
}

void SharedFile::answer_others() {
  while (!is_ending_.load()) {
    const std::uint32_t seen = window_->rings();
    if (is_ending_.load()) break;
    wake_();
    window_->answer(seen);
  }
  has_answered_.store(true);
}

void SharedFile::halt(const char* why) {
  if (state_ == State::stopped) return;
  const bool was_left = std::exchange(state_, State::stopped) == State::left;
  if (was_left) return;
  figures_.stopped = why;
  window_->leave();
  window_->tell_all();
}

/// What is declared may be fetched in other ways.
void SharedFile::leave(const char* why, Leaves how) {
  halt(why);
  how_left_ = how;
  state_ = State::left;
}

/// Others of the window may read on.
void SharedFile::end_before(Bytes offset) {
  const std::lock_guard lock(mutex_);
  plan_.go_to(places_.at(std::min(front_.furthest(), places_.end())));
  if (plan_.end_before(offset)) places_ = PlanPlaces(plan_.extents());
  upcoming_.reset();
  cursor_ = -1;
}

void SharedFile::stop(const char* why) {
  const std::lock_guard lock(mutex_);
  halt(why);
}

void SharedFile::close_source() {
  const std::lock_guard lock(mutex_);
  source_.reset();
  under_way_.clear();
  end_answering();
  window_->depart();
}

ServedFile::Served SharedFile::serve(std::span<std::byte> into, Bytes offset,
                                     const FileVersion& version, std::int64_t) {
  std::unique_lock lock(mutex_);
  const Extent read{offset, static_cast<Bytes>(into.size())};
  ++figures_.reads;
  figures_.bytes_asked += read.length;
  figures_.bytes_asked_declared += plan_.declared().overlap(read);
  const auto answer = [this](Bytes served) -> Served {
    return {.bytes = served,
            .room = state_ == State::reading && window_->is_fetched_by_nobody(),
            .over = state_ == State::stopped,
            .left = state_ == State::left,
            .again = state_ == State::left && window_->is_retired(),
            .behind = state_ == State::left && how_left_ == Leaves::behind,
            .astray = state_ == State::left && figures_.plans_given_up > 0};
  };
  if (version != version_) halt("the file was changed");
  if (read.empty() || (state_ == State::waiting && !begin(read)) || state_ != State::reading) {
    return answer(0);
  }
  bool passes = come_to(read);
  const Bytes served = state_ == State::reading ? copy(into, offset, passes, lock) : 0;
  if (served == read.length) ++figures_.reads_served;
  figures_.bytes_served += served;
  if (state_ == State::reading && window_->is_retired())
    leave("the memory that was shared is lost");
  if (state_ != State::reading) return answer(served);
  judge(read, served);
  if (state_ == State::reading) pass(read, passes);
  Served answered = answer(served);
  const Bytes left = trial_.offset();
  answered.asks = trial_.is_answered_by(read) && served == 0 && is_first_at(left);
  return answered;
}

/// Whether none of the others has read there: the page cache has what they read.
bool SharedFile::is_first_at(Bytes offset) const {
  const auto place = places_.of(offset, 0);
  return place && std::ranges::none_of(window_->others(), [&](const auto& other) {
           return other.fellow.front > *place;
         });
}

void SharedFile::took(Bytes bytes, std::int64_t ns) {
  const std::lock_guard lock(mutex_);
  if (memory_->took(version_.id.device, bytes, ns)) halt("the page cache had it");
}

/// Whether it reads together with the others from now on.
bool SharedFile::begin(Extent read) {
  const auto place = place_of(read, 0);
  if (!place) {
    if (++strays_ > most_strays) give_up_plan();
    return false;
  }
  // An index is read before the data, and may lie anywhere: the next read shows whether it was one.
  const auto place_before = std::exchange(first_place_, place);
  const bool is_index = *place >= block_ && (!place_before || *place < *place_before);
  if (is_index) {
    if (++misses_ >= misses_before_seeking) leave("it reads elsewhere than the others");
    return false;
  }
  first_place_.reset();
  misses_ = 0;
  if (!window_->enter(*place, before_, steady_ns())) {
    leave("the others are too far away", Leaves::behind);
    return false;
  }
  front_ = ReadingFront(*place);
  strays_ = 0;
  state_ = State::reading;
  return true;
}

/// `passes`: as ReadingFront has it, of what is read.
Bytes SharedFile::copy(std::span<std::byte> into, Bytes offset, bool& passes,
                       std::unique_lock<std::mutex>& lock) {
  auto deadline = not_waiting;
  const std::int64_t waited_before = figures_.waited_ns;
  const Bytes end = offset + static_cast<Bytes>(into.size());
  Bytes at = offset;
  while (at < end) {
    const std::uint32_t seen = window_->arrivals();
    const auto piece = window_->holding(at);
    if (piece && piece->is_ready) {
      const Bytes count = std::min(end, piece->held.end()) - at;
      const auto part =
          into.subspan(static_cast<std::size_t>(at - offset), static_cast<std::size_t>(count));
      if (!window_->copy(*piece, at, part)) continue;
      at += count;
      deadline = not_waiting;
      // A read may be longer than the window.
      pass({offset, at - offset}, passes);
      if (state_ != State::reading) break;
      continue;
    }
    std::optional<Bytes> place;  // Of what has not begun.
    if (!piece) {
      const Extent rest{at, end - at};
      // What it has of a long read may have to make room for the rest.
      if (at > offset) passes = come_to(rest);
      if (is_declared(rest)) place = places_.of(at, front_.furthest());
      if (state_ != State::reading || !place || !is_coming(*place)) break;
    }
    if (deadline == not_waiting) deadline = std::chrono::steady_clock::now() + longest_wait;
    if (!wait(lock, seen, deadline, place)) break;
  }
  patience_.over(steady_ns());
  if (at > offset) waits_in_vain_ = 0;
  if (figures_.waited_ns - waited_before > stall_ns) ++figures_.stalls;
  return at - offset;
}

/// Whether it will be fetched soon, though it is not on its way. Who skips more than the window
/// does not wait: what lies before is kept for it.
bool SharedFile::is_coming(Bytes place) const {
  return place >= window_->cursor() && place - front_.passed() <= window_->bytes();
}

/// Who skips more than a window is not waited for.
bool SharedFile::is_in_reach(Bytes place) const {
  return place - front_.furthest() <= window_->bytes();
}

/// Whether to look again. `place`: what has not begun.
bool SharedFile::wait(std::unique_lock<std::mutex>& lock, std::uint32_t seen,
                      std::chrono::steady_clock::time_point deadline, std::optional<Bytes> place) {
  const auto wake_fetching = [this] {
    if (window_->is_fetched_by_nobody() || window_->fetches()) wake_();
  };
  if (place) wake_fetching();
  const std::int64_t start_ns = steady_ns();
  lock.unlock();
  window_->wait(seen, between_signs);
  lock.lock();
  const std::int64_t now_ns = steady_ns();
  figures_.waited_ns += now_ns - start_ns;
  if (state_ != State::reading) return false;
  if (window_->is_retired()) {
    leave("the memory that was shared is lost");
    return false;
  }
  if (!window_->is_in()) {
    leave("the others went on without it", Leaves::behind);
    return false;
  }
  window_->give_sign(now_ns);
  if (std::chrono::steady_clock::now() >= deadline) {
    // Readers of one process that wait at the same time wait once.
    if (deadline - longest_wait < last_in_vain_) return false;
    last_in_vain_ = std::chrono::steady_clock::now();
    if (++waits_in_vain_ >= most_waits_in_vain) halt("what is fetched does not come");
    return false;
  }
  const bool has_changed = window_->arrivals() != seen;
  const bool any = has_changed || window_->look_after(now_ns);
  if (!has_changed) wake_fetching();
  // There is room for it when this reader has passed what lies before, which is kept for it.
  const bool is_for_itself = place && !any && window_->tail() == front_.passed() &&
                             *place > front_.passed() + most_passed_over;
  looks_for_itself_ = is_for_itself ? looks_for_itself_ + 1 : 0;
  if (looks_for_itself_ == most_looks_for_itself) {
    looks_for_itself_ = 0;
    return false;
  }
  const bool is_for_others = front_.passed() - window_->cursor() > window_->bytes() / part_behind;
  if (place && (!any || is_for_others)) {
    wait_for_others(*place, now_ns);
  } else {
    patience_.over(now_ns);
  }
  return true;
}

/// There is no room for what is at `place` before those behind have read.
void SharedFile::wait_for_others(Bytes place, std::int64_t now_ns) {
  const auto others = window_->others();
  std::vector<Fellow> fellows;
  fellows.reserve(others.size());
  for (const auto& other : others) fellows.push_back(other.fellow);
  const auto given_up = patience_.given_up({.others = fellows,
                                            .place = place,
                                            .reading_ns = now_ns - before_.began_ns,
                                            .now_ns = now_ns,
                                            .window = window_->bytes(),
                                            .awaited = window_->awaited()});
  for (const std::size_t index : given_up) window_->leave_behind(others[index]);
}

void SharedFile::judge(Extent read, Bytes served) {
  if (served > 0) {
    confidence_.observe(true);
    misses_ = 0;
    window_->confirm(block_);
    return;
  }
  const auto place = place_of(read, front_.furthest());
  if (!place) {
    confidence_.observe(false);
    if (confidence_.lost()) give_up_plan();
    return;
  }
  // It was left to the page cache, could not be fetched, or did not come in time.
  if (*place >= front_.passed() && is_in_reach(*place)) return;
  if (++misses_ >= misses_before_seeking) leave("it reads elsewhere than the others");
}

void SharedFile::give_up_plan() {
  ++figures_.plans_given_up;
  leave("other things are read than were declared");
}

/// If nothing of a read was, it may be of an index that lies between neighbours that are fetched as
/// one, and is read at any time.
bool SharedFile::is_declared(Extent read) const { return plan_.declared().overlap(read) > 0; }

/// Where a read begins in the plan, or else ends. None: nothing of it was declared.
std::optional<Bytes> SharedFile::place_of(Extent read, Bytes from) const {
  if (!is_declared(read)) return std::nullopt;
  const auto begin = places_.of(read.offset, from);
  return begin ? begin : places_.of(read.end() - 1, from);
}

/// Before it is read. Whether what is read is passed with it, as ReadingFront has it.
bool SharedFile::come_to(Extent read) {
  const auto place = place_of(read, front_.furthest());
  if (!place || !is_in_reach(*place)) return false;
  const Bytes before = front_.passed();
  const bool passes = front_.begin_read(*place);
  if (front_.passed() > before) pass_to_front();
  return passes;
}

/// The others need not keep it.
void SharedFile::pass(Extent read, bool passes) {
  if (!is_declared(read)) return;
  const auto last = places_.of(read.end() - 1, front_.furthest());
  const auto place = last ? last : places_.of(read.offset, front_.furthest());
  if (!place || !is_in_reach(*place)) return;
  const Bytes end = *place + 1;
  // Behind the end nothing comes that could show it.
  front_.read_to(end, passes || end >= places_.end());
  pass_to_front();
}

void SharedFile::pass_to_front() {
  const Bytes front = front_.passed();
  if (!window_->pass(front, steady_ns()))
    return leave("the others went on without it", Leaves::behind);
  if (front < places_.end()) return;
  window_->leave();
  state_ = State::waiting;  // It may begin again.
}

std::optional<ReadRequest> SharedFile::next_request() {
  const std::lock_guard lock(mutex_);
  if (state_ != State::reading) return std::nullopt;
  if (!window_->fetches() && !begin_fetching()) return std::nullopt;
  for (;;) {
    follow_cursor();
    auto& next = next_piece();
    if (window_->longest_transfer() < window_->bytes() / part_left) window_->retire();
    if (window_->is_retired()) {
      leave("the memory that was shared is lost");
      return std::nullopt;
    }
    if (!next) {
      if (window_->cursor() >= places_.end()) window_->hand_over();
      return std::nullopt;
    }
    take_out_what_is_held(*next);
    const Extent held =
        next->empty() ? Extent{} : intersect(transfer_of(next->hull()), {0, version_.size});
    if (next->empty() || leave_to_page_cache(*next, held)) {
      go_past();
      if (resident_ < most_resident_pieces || figures_.requests > 0) continue;
      halt("the page cache had it");
      return std::nullopt;
    }
    resident_ = 0;
    const auto& parts = next->parts();
    Bytes begin = places_.of(parts.front().place);
    for (const auto& part : parts) begin = std::min(begin, places_.of(part.place));
    if (!has_room_for(*next, begin)) return std::nullopt;
    return fetch(*next, begin);
  }
}

/// Whether it is this one now that fetches.
bool SharedFile::begin_fetching() {
  if (!window_->is_fetched_by_nobody() || window_->cursor() >= places_.end()) return false;
  if (!answering_.joinable()) {
    auto thread = try_background_thread([this] { answer_others(); });
    if (!thread) return false;
    answering_ = std::move(*thread);
  }
  if (!window_->begin_fetching()) return false;
  cursor_ = -1;
  if (const auto told = window_->told_gap()) {
    tuner_.obey(*told);
  } else {
    memory_->teach(version_.id.device, tuner_, plan_);
  }
  return true;
}

/// To where somebody came who needs what lies behind, or where another has fetched until now; past
/// what nobody wants.
void SharedFile::follow_cursor() {
  // The cursor first: who comes says where it is before it sets the cursor back.
  Bytes cursor = window_->cursor();
  const Bytes tail = std::min(window_->tail(), places_.end());
  if (cursor < tail && window_->advance(cursor, tail)) cursor = tail;
  if (cursor_ == cursor) return;
  upcoming_.reset();
  cursor_ = cursor;
  plan_.go_to(places_.at(std::clamp<Bytes>(cursor, 0, places_.end())));
}

std::optional<FetchPiece>& SharedFile::next_piece() {
  if (!upcoming_) {
    RequestShape shape = tuner_.shape();
    shape.most = std::min(shape.most, round_down(window_->longest_transfer(), direct_alignment));
    if (shape.most > 0) upcoming_ = plan_.next(shape);
    trial_.next_piece();
  }
  return upcoming_;
}

/// Parts that are there, or on their way, for as long as they are needed, and beginnings of parts.
void SharedFile::take_out_what_is_held(FetchPiece& piece) const {
  const auto pieces = window_->pieces();
  const auto held_of = [&](const FetchPiece::Part& part) -> Extent {
    for (const auto& held : pieces) {
      const Extent found = intersect(part.extent, held.held);
      const bool is_beginning = !found.empty() && found.offset == part.extent.offset;
      if (is_beginning && places_.of(part.place) + found.length <= held.end) return found;
    }
    return {};
  };
  for (bool is_changed = true; is_changed;) {
    is_changed = false;
    const auto parts = piece.parts();
    for (const auto& part : parts) {
      const Extent held = held_of(part);
      if (held.empty()) continue;
      piece.take_out(held);
      is_changed = true;
    }
  }
}

/// What was upcoming is under way, or not to be fetched. False: somebody behind needs something.
bool SharedFile::go_past() {
  upcoming_.reset();
  const Bytes to = places_.of(plan_.position());
  if (!window_->advance(cursor_, to)) return false;
  cursor_ = to;
  return true;
}

/// Whether the page cache has all parts of a piece, or it is to show that. Who waits for it reads
/// for itself.
bool SharedFile::leave_to_page_cache(const FetchPiece& piece, Extent held) {
  if (!trial_.leaves(*source_, piece, held, *memory_, version_.id.device, figures_)) return false;
  figures_.bytes_resident += piece.needed();
  ++resident_;
  window_->tell_all();
  return true;
}

bool SharedFile::has_room_for(const FetchPiece& piece, Bytes begin) {
  const Bytes length = transfer_of(piece.hull()).length;
  const Bytes ahead = window_->bytes_ahead(begin);
  const Bytes opened = window_->opened_bytes(block_);
  const bool is_open = ahead == 0 || opened >= window_->bytes() || ahead + length <= opened;
  return is_open && window_->make_room(length, begin);
}

std::optional<ReadRequest> SharedFile::fetch(const FetchPiece& piece, Bytes begin) {
  const Extent transfer = transfer_of(piece.hull());
  const Extent held = intersect(transfer, {0, version_.size});
  Bytes end = begin;
  for (const auto& part : piece.parts()) {
    end = std::max(end, places_.of(part.place) + part.extent.length);
  }
  const auto begun = window_->begin_piece(held, transfer.length, begin, end, piece.between());
  if (!begun) return std::nullopt;
  under_way_.push_back({begun->number, piece, held, tuner_.trial(), measured_.depart(steady_ns())});
  go_past();
  ++figures_.requests;
  return ReadRequest{begun->number, source_.get(), begun->memory, transfer.offset};
}

void SharedFile::ended(const ReadOutcome& outcome) {
  const auto version = source_->version();
  const std::lock_guard lock(mutex_);
  const auto piece = std::ranges::find(under_way_, outcome.tag, &UnderWay::number);
  if (piece == under_way_.end()) return;
  const UnderWay done = std::move(*piece);
  under_way_.erase(piece);
  figures_.bytes_fetched += outcome.moved;
  figures_.bytes_refetched += fetched_.add({done.held.offset, outcome.moved});
  const bool is_there = outcome.os_errno == 0 && outcome.moved >= done.held.length;
  // The others may use it, whatever has become of this one.
  if (!window_->end_piece(done.number, is_there && version == version_)) {
    figures_.bytes_unused += outcome.moved;
  }
  if (!is_there) {
    ++figures_.requests_failed;
    return;
  }
  figures_.bytes_between += done.wanted.hull().length - done.wanted.needed();
  const std::int64_t now_ns = steady_ns();
  measured_.arrive(done.departure, outcome.moved, now_ns);
  // Before that it is ourselves who hold the storage up.
  const bool is_open = window_->opened_bytes(block_) >= window_->bytes();
  if (window_->fetches() && is_open &&
      tuner_.arrive(done.trial, outcome.moved, now_ns, figures_.waited_ns)) {
    tuner_.decide(plan_.coming(RequestTuner::extents_to_weigh), plan_.left());
    window_->tell_gap(tuner_.gap_for_others());
    memory_->learn(version_.id.device, tuner_);
  }
  if (version != version_) halt("the file was changed");
}

void SharedFile::count_cpu(std::int64_t nanoseconds) {
  const std::lock_guard lock(mutex_);
  figures_.helper_cpu_ns += nanoseconds;
}

bool SharedFile::is_done() {
  const std::lock_guard lock(mutex_);
  const bool goes_on = state_ == State::waiting || state_ == State::reading;
  return !goes_on || front_.passed() >= places_.end();
}

bool SharedFile::foresees(Bytes offset) {
  const std::lock_guard lock(mutex_);
  if (state_ != State::reading) return false;
  // Near to where it is, it goes on there, whether that is fetched or left to the page cache.
  const auto place = places_.of(offset, front_.furthest());
  return (place && is_near(front_.furthest(), *place)) || window_->holding(offset).has_value();
}

PrefetchFigures SharedFile::figures() const {
  const std::lock_guard lock(mutex_);
  PrefetchFigures result = figures_;
  result.bytes_unused += window_->unused_bytes();
  result.gap_found = tuner_.gap_found();
  result.memory_peak = window_->is_maker() ? window_->bytes() : 0;
  result.latency_ns = measured_.latency_ns();
  result.bytes_per_second = measured_.bytes_per_second();
  return result;
}

}  // namespace forebay
