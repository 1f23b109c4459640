#include "core/engine/prefetch/shared_file.hpp"

#include <algorithm>
#include <utility>

#include "core/engine/prefetch/plan_fingerprint.hpp"
#include "core/engine/prefetch/steady_time.hpp"

namespace forebay {
namespace {

/// Between two looks of one who waits at whether those whom it waits for go on.
constexpr std::chrono::milliseconds between_signs{20};

/// In a row that find a reader waiting for what cannot come before it has read something else.
constexpr int most_looks_for_itself = 2;

/// What is fetched so much of the window behind a reader is for others.
constexpr Bytes part_behind = 4;

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
  FetchPlan plan = plan_;
  plan.go_to(places_.at(std::min(front_.furthest(), places_.end())));
  if (plan.end_before(offset)) follow_plan(std::move(plan));
}

void SharedFile::follow_plan(FetchPlan plan) {
  places_ = PlanPlaces(plan.extents());
  plan_ = std::move(plan);
  upcoming_.reset();
  cursor_ = -1;
}

/// Something is to be fetched, and nobody does.
bool SharedFile::lacks_fetching() const {
  return window_->is_fetched_by_nobody() && window_->cursor() < places_.end();
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
  const Bytes wanted = plan_.declared().overlap(read);
  figures_.bytes_asked_declared += wanted;
  const auto answer = [this, wanted](Bytes served) -> Served {
    return {.bytes = served,
            .wanted = wanted,
            .room = state_ == State::reading && lacks_fetching(),
            .over = state_ == State::stopped,
            .left = state_ == State::left,
            .again = state_ == State::left && window_->is_retired(),
            .behind = state_ == State::left && how_left_ == Leaves::behind,
            .astray = state_ == State::left && figures_.plans_given_up > 0};
  };
  if (version != version_) halt("the file was changed");
  // Another opening was to read there; but it is this one that came.
  if (places_.end() < figures_.bytes_planned && is_declared(read) && !place_of(read, 0)) {
    follow_plan(FetchPlan(intent_.willneed, version_.size));
    if (state_ == State::waiting) first_place_ = front_.furthest();
  }
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
    if (lacks_fetching() || window_->fetches()) wake_();
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
  const auto place = places_.of_last(read, front_.furthest());
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
  return place && (is_near(front_.furthest(), *place) || window_->holding(offset).has_value());
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
