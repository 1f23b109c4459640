#include "core/engine/prefetch/shared_window.hpp"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>
#include <utility>

#include "core/engine/prefetch/process_life.hpp"
#include "core/engine/prefetch/steady_time.hpp"
#include "core/model/direct_io.hpp"

namespace forebay {
namespace {

/// What is fetched of a plan before anything of it was read, blocks.
constexpr Bytes blocks_at_first = 4;

/// As long as nobody rings.
constexpr std::chrono::hours between_answers{1};

constexpr unsigned fetcher_bits = 8;
constexpr int fetcher_in(std::uint64_t lease) {
  return static_cast<int>(lease & ((1U << fetcher_bits) - 1)) - 1;
}
constexpr std::uint64_t lease_after(std::uint64_t lease, int number) {
  return ((lease >> fetcher_bits) + 1) << fetcher_bits | static_cast<std::uint64_t>(number + 1);
}

constexpr Bytes parts = 64;  ///< Of a piece, a bit each.

/// Those in [from, to).
constexpr std::uint64_t part_bits(Bytes from, Bytes to) {
  const auto below = [](Bytes end) {
    return end >= parts ? ~std::uint64_t{0} : (std::uint64_t{1} << static_cast<unsigned>(end)) - 1;
  };
  return from < to ? below(to) & ~below(from) : 0;
}

/// The parts of a piece that lie within `extent`; or, if `touched`, that have a byte of it.
std::uint64_t parts_in(Extent held, Extent extent, bool touched) {
  const Extent inside = intersect(held, extent);
  if (inside.empty()) return 0;
  const Bytes from = (inside.offset - held.offset) * parts;
  const Bytes to = (inside.end() - held.offset) * parts;
  const auto up = [&](Bytes place) { return (place + held.length - 1) / held.length; };
  return touched ? part_bits(from / held.length, up(to)) : part_bits(up(from), to / held.length);
}

Bytes unread_bytes(Extent held, std::uint64_t read_parts) {
  return held.length * (parts - std::popcount(read_parts)) / parts;
}

/// What is copied may be written to at the same time, which is seen by what is loaded afterwards.
/// ThreadSanitizer, which knows memcpy whoever calls it, and no fences, is not to see it.
#if defined(__SANITIZE_THREAD__)
[[gnu::no_sanitize_thread]] void copy_racing(std::byte* into, const volatile std::byte* from,
                                             std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) into[i] = from[i];
}
#else
void copy_racing(std::byte* into, const std::byte* from, std::size_t count) {
  std::memcpy(into, from, count);
  std::atomic_thread_fence(std::memory_order_acquire);
}
#endif

}  // namespace

std::unique_ptr<SharedWindow> SharedWindow::join(const WindowKind& kind) {
  if (kind.bytes < direct_alignment) return nullptr;
  std::unique_ptr<SharedWindow> window(new SharedWindow(kind));
  WindowMemory& memory = window->memory_;
  bool is_discarded = false;
  const auto has_entered = [&]() -> bool {
    const auto named = memory.open();
    if (!named) return false;
    window->state_ = memory.state();
    if (memory.is_maker() || window->bury_the_dead()) return window->take_number();
    // What the killed have left behind may be written to yet.
    memory.discard();
    is_discarded = true;
    return false;
  };
  return has_entered() || (is_discarded && has_entered()) ? std::move(window) : nullptr;
}

bool SharedWindow::take_number() {
  for (std::size_t i = 0; i < most_readers; ++i) {
    WindowReader& free = state_->readers[i];
    if (free.process.load() != 0) continue;
    number_ = static_cast<int>(i);
    free.front_and_one.store(0);
    free.asked_ns.store(0);
    free.answered_ns.store(0);
    free.beginning.store(beginning_of(::getpid()));
    free.process.store(::getpid());
    return true;
  }
  return false;
}

void SharedWindow::depart() {
  if (number_ < 0) return;
  leave();
  unused_bytes_ += left_over();
  // What is on its way may still land: nobody gets its memory.
  free_from(number_);
  reader(number_).process.store(0);
  memory_.remove_if([this] { return !bury_the_dead(); });
  number_ = -1;
}

WindowReader& SharedWindow::reader(int number) const {
  return state_->readers[static_cast<std::size_t>(number)];
}

/// Whether anybody lives.
bool SharedWindow::bury_the_dead() {
  bool any = false;
  for (std::size_t i = 0; i < most_readers; ++i) {
    WindowReader& one = state_->readers[i];
    std::int32_t process = one.process.load();
    if (process == 0) continue;
    if (!has_ended(process, one.beginning.load())) {
      any = true;
      continue;
    }
    free_from(static_cast<int>(i));
    one.front_and_one.store(0);
    one.process.compare_exchange_strong(process, 0);
  }
  return any;
}

/// What it was to fetch is for others to fetch.
void SharedWindow::free_from(int number) {
  std::uint64_t lease = state_->lease.load();
  if (fetcher_in(lease) == number) {
    state_->lease.compare_exchange_strong(lease, lease_after(lease, -1));
  }
  for (std::size_t i = 0; i < most_pieces; ++i) {
    const auto piece = piece_at(i);
    if (!piece || piece->is_ready || piece->owner != number) continue;
    std::uint64_t word = piece->word;
    const std::uint64_t given_up = word_of(number_of(word), Stage::abandoned);
    if (state_->pieces[i].word.compare_exchange_strong(word, given_up)) set_back(piece->begin);
  }
  tell_all();
}

bool SharedWindow::enter(Bytes place, const Before& before, std::int64_t now_ns) {
  const auto all = fellows();
  if (all.empty()) {
    state_->began_ns.store(before.began_ns);
    state_->began_at.store(place - before.passed);
  }
  const Bytes first = all.empty() ? place : std::ranges::max(all, {}, &Fellow::front).front;
  const bool is_first = place >= first;
  const Bytes passed = is_first ? before.passed : first - state_->began_at.load();
  const std::int64_t began_ns = is_first ? before.began_ns : state_->began_ns.load();
  if (!may_join(place, all, passed, now_ns - began_ns, memory_.bytes())) return false;
  front_ = place;
  reader(number_).moved_ns.store(now_ns);
  reader(number_).front_and_one.store(place + 1);
  set_back(place);
  if (const int other = fetcher(); other >= 0) ring(other);
  return true;
}

bool SharedWindow::is_in() const {
  return front_ >= 0 && reader(number_).front_and_one.load() == front_ + 1;
}

bool SharedWindow::pass(Bytes front, std::int64_t now_ns) {
  WindowReader& own = reader(number_);
  own.moved_ns.store(now_ns);
  if (front <= front_) return is_in();
  Bytes expected = front_ + 1;
  if (front_ < 0 || !own.front_and_one.compare_exchange_strong(expected, front + 1)) return false;
  const Bytes before = front_;
  front_ = front;
  // Who fetches has written what it awaits before it looked for the tail; we, the other way round.
  Bytes awaited = state_->awaited.load();
  if (before < awaited && tail() >= awaited &&
      state_->awaited.compare_exchange_strong(awaited, nowhere)) {
    if (const int other = fetcher(); other >= 0) ring(other);
  }
  return true;
}

void SharedWindow::give_sign(std::int64_t now_ns) { reader(number_).moved_ns.store(now_ns); }

void SharedWindow::leave() {
  front_ = -1;
  reader(number_).front_and_one.store(0);
  if (const int other = fetcher(); other >= 0 && other != number_) ring(other);
  hand_over();
}

void SharedWindow::hand_over() {
  own_lease_ = 0;
  std::uint64_t lease = state_->lease.load();
  if (fetcher_in(lease) != number_) return;
  state_->lease.compare_exchange_strong(lease, lease_after(lease, -1));
  tell_all();
}

std::optional<SharedWindow::Piece> SharedWindow::piece_at(std::size_t index) const {
  const WindowPiece& state = state_->pieces[index];
  const std::uint64_t word = state.word.load();
  const Stage stage = stage_of(word);
  if (stage != Stage::under_way && stage != Stage::ready) return std::nullopt;
  const Piece piece{.held = {state.offset.load(), state.length.load()},
                    .begin = state.begin.load(),
                    .end = state.end.load(),
                    .is_ready = stage == Stage::ready,
                    .owner = state.owner.load(),
                    .index = index,
                    .word = word,
                    .units = state.units.load()};
  if (number_of(state.word.load()) != number_of(word)) return std::nullopt;
  // Nobody else's mistake is ours.
  const bool is_sound =
      piece.held.offset >= 0 && piece.held.length > 0 &&
      piece.held.offset <= nowhere - piece.held.length &&
      piece.held.length <= std::popcount(piece.units) * memory_.unit() &&
      static_cast<Bytes>(std::bit_width(piece.units)) * memory_.unit() <= memory_.bytes() &&
      piece.owner >= 0 && piece.owner < static_cast<int>(most_readers);
  return is_sound ? std::optional(piece) : std::nullopt;
}

std::optional<SharedWindow::Piece> SharedWindow::holding(Bytes offset) const {
  std::optional<Piece> result;
  for (std::size_t i = 0; i < most_pieces; ++i) {
    const WindowPiece& state = state_->pieces[i];
    const Bytes begin = state.offset.load();
    if (begin < 0 || begin > offset || offset - begin >= state.length.load()) continue;
    const auto piece = piece_at(i);
    if (!piece || intersect(piece->held, {offset, 1}).empty()) continue;
    if (piece->is_ready) return piece;
    result = piece;
  }
  return result;
}

std::vector<SharedWindow::Piece> SharedWindow::pieces() const {
  std::vector<Piece> result;
  for (std::size_t i = 0; i < most_pieces; ++i) {
    if (const auto piece = piece_at(i)) result.push_back(*piece);
  }
  return result;
}

bool SharedWindow::copy(const Piece& piece, Bytes offset, std::span<std::byte> into) {
  const auto held = memory_.at(piece.units, piece.held.length);
  copy_racing(into.data(), held.data() + (offset - piece.held.offset), into.size());
  WindowPiece& state = state_->pieces[piece.index];
  if (state.word.load() != piece.word) return false;
  state.read_parts.fetch_or(parts_in(piece.held, {offset, static_cast<Bytes>(into.size())}, true));
  return true;
}

Bytes SharedWindow::cursor() const { return state_->cursor.load(); }

bool SharedWindow::look_after(std::int64_t now_ns) {
  std::uint64_t asked = 0;  // A bit for each reader.
  const auto ask = [&](int number) {
    const std::uint64_t bit = std::uint64_t{1} << static_cast<unsigned>(number);
    if (number == number_ || (asked & bit) != 0) return;
    asked |= bit;
    look_after(number, now_ns);
  };
  if (const int one = fetcher(); one >= 0) ask(one);
  bool any = false;
  for (std::size_t i = 0; i < most_pieces; ++i) {
    const auto piece = piece_at(i);
    if (!piece || piece->is_ready) continue;
    ask(piece->owner);
    any = any || stage_of(state_->pieces[i].word.load()) == Stage::under_way;
  }
  return any;
}

void SharedWindow::look_after(int number, std::int64_t now_ns) {
  WindowReader& other = reader(number);
  std::int32_t process = other.process.load();
  const bool is_dead = process == 0 || has_ended(process, other.beginning.load());
  const std::int64_t asked_ns = other.asked_ns.load();
  const std::int64_t answered_ns = other.answered_ns.load();
  if (!is_dead && !is_silent(asked_ns, answered_ns, now_ns)) {
    if (asked_ns <= answered_ns) other.asked_ns.store(now_ns);
    ring(number);
    return;
  }
  free_from(number);
  if (is_dead && process != 0) {
    other.front_and_one.store(0);
    other.process.compare_exchange_strong(process, 0);
  }
}

std::uint32_t SharedWindow::arrivals() const { return state_->arrived.rings.load(); }

void SharedWindow::wait(std::uint32_t seen_arrivals, std::chrono::nanoseconds limit) {
  state_->arrived.wait(seen_arrivals, limit);
}

void SharedWindow::tell_all() { state_->arrived.ring(); }

std::vector<Fellow> SharedWindow::fellows() const {
  std::vector<Fellow> result;
  for (const WindowReader& one : state_->readers) {
    const Bytes front_and_one = one.front_and_one.load();
    if (one.process.load() != 0 && front_and_one > 0) {
      result.push_back({front_and_one - 1, one.moved_ns.load()});
    }
  }
  return result;
}

std::vector<SharedWindow::Other> SharedWindow::others() const {
  std::vector<Other> result;
  for (std::size_t i = 0; i < most_readers; ++i) {
    const WindowReader& one = state_->readers[i];
    const Bytes front_and_one = one.front_and_one.load();
    if (static_cast<int>(i) == number_ || one.process.load() == 0 || front_and_one <= 0) continue;
    result.push_back({static_cast<int>(i), {front_and_one - 1, one.moved_ns.load()}});
  }
  return result;
}

void SharedWindow::leave_behind(const Other& other) {
  Bytes expected = other.fellow.front + 1;
  if (!reader(other.number).front_and_one.compare_exchange_strong(expected, 0)) return;
  if (const int one = fetcher(); one >= 0) ring(one);
}

Bytes SharedWindow::tail() const {
  Bytes result = nowhere;
  for (const WindowReader& one : state_->readers) {
    const Bytes front_and_one = one.front_and_one.load();
    if (one.process.load() != 0 && front_and_one > 0) result = std::min(result, front_and_one - 1);
  }
  return result;
}

int SharedWindow::fetcher() const {
  const int number = fetcher_in(state_->lease.load());
  return number < static_cast<int>(most_readers) ? number : -1;
}

bool SharedWindow::fetches() const { return own_lease_ != 0 && state_->lease.load() == own_lease_; }

bool SharedWindow::begin_fetching() {
  std::uint64_t lease = state_->lease.load();
  if (fetcher_in(lease) >= 0) return false;
  const std::uint64_t own = lease_after(lease, number_);
  if (!state_->lease.compare_exchange_strong(lease, own)) return false;
  own_lease_ = own;
  return true;
}

Bytes SharedWindow::opened_bytes(Bytes block) const {
  const Bytes confirmed = std::clamp<Bytes>(state_->confirmed.load(), 0, memory_.bytes());
  return std::min(memory_.bytes(), (blocks_at_first + confirmed) * block);
}

void SharedWindow::confirm(Bytes block) {
  if (opened_bytes(block) >= memory_.bytes()) return;
  ++state_->confirmed;
  if (const int one = fetcher(); one >= 0) ring(one);
}

Bytes SharedWindow::bytes_ahead(Bytes place) const {
  const auto all = fellows();
  if (all.empty()) return 0;
  const Bytes first = std::ranges::max(all, {}, &Fellow::front).front;
  if (place < first) return 0;
  Bytes sum = 0;
  for (const Piece& piece : pieces()) {
    if (piece.end > first) sum += piece.held.length;
  }
  return sum;
}

/// Units side by side that are free, as bits.
std::optional<std::uint64_t> SharedWindow::units_for(Bytes transfer, std::uint64_t taken) const {
  const Bytes units = memory_.bytes() / memory_.unit();
  const Bytes count = (transfer + memory_.unit() - 1) / memory_.unit();
  if (count <= 0 || count > units) return std::nullopt;
  constexpr Bytes bits = 64;
  const std::uint64_t run = ~std::uint64_t{0} >> static_cast<unsigned>(bits - count);
  for (Bytes first = 0; first + count <= units; ++first) {
    const std::uint64_t mask = run << static_cast<unsigned>(first);
    if ((taken & mask) == 0) return mask;
  }
  return std::nullopt;
}

bool SharedWindow::has_room(Bytes transfer) const {
  const bool has_piece = std::ranges::any_of(state_->pieces, [](const WindowPiece& state) {
    return stage_of(state.word.load()) == Stage::free;
  });
  return has_piece && units_for(transfer, state_->taken.load()).has_value();
}

bool SharedWindow::make_room(Bytes transfer, Bytes wanted) {
  while (!has_room(transfer)) {
    const auto all = pieces();
    std::vector<HeldPiece> held;
    held.reserve(all.size());
    for (const Piece& piece : all) held.push_back({piece.begin, piece.end, piece.is_ready});
    const Bytes all_passed = tail();
    if (const auto victim = piece_to_give_up(held, all_passed, wanted)) {
      give_up(all[*victim]);
      continue;
    }
    Bytes least = nowhere;
    for (const HeldPiece& piece : held) {
      if (piece.is_ready) least = std::min(least, piece.end);
    }
    state_->awaited.store(least);
    if (tail() <= all_passed || least == nowhere) return false;
  }
  return true;
}

Bytes SharedWindow::awaited() const {
  const Bytes place = state_->awaited.load();
  return place == nowhere ? 0 : place;
}

/// By whoever changes its state first.
void SharedWindow::give_up(const Piece& piece) {
  std::uint64_t word = piece.word;
  const std::uint64_t free = word_of(number_of(word), Stage::free);
  WindowPiece& state = state_->pieces[piece.index];
  const std::uint64_t read_parts = state.read_parts.load();
  if (!state.word.compare_exchange_strong(word, free)) return;
  unused_bytes_ += unread_bytes(piece.held, read_parts);
  state_->taken.fetch_and(~piece.units);
}

Bytes SharedWindow::left_over() const {
  if (number_ < 0 || !fellows().empty()) return 0;
  Bytes sum = 0;
  for (const Piece& piece : pieces()) {
    if (piece.is_ready) {
      sum += unread_bytes(piece.held, state_->pieces[piece.index].read_parts.load());
    }
  }
  return sum;
}

std::optional<SharedWindow::Fetch> SharedWindow::begin_piece(Extent held, Bytes transfer,
                                                             Bytes begin, Bytes end,
                                                             std::span<const Extent> between) {
  std::uint64_t taken = state_->taken.load();
  std::optional<std::uint64_t> units;
  do {
    units = units_for(transfer, taken);
    if (!units) return std::nullopt;
  } while (!state_->taken.compare_exchange_weak(taken, taken | *units));
  for (std::size_t i = 0; i < most_pieces; ++i) {
    WindowPiece& state = state_->pieces[i];
    std::uint64_t word = state.word.load();
    if (stage_of(word) != Stage::free) continue;
    const std::uint64_t number = ++state_->numbers;
    if (!state.word.compare_exchange_strong(word, word_of(number, Stage::claimed))) continue;
    state.offset.store(held.offset);
    state.length.store(held.length);
    state.begin.store(begin);
    state.end.store(end);
    state.units.store(*units);
    state.owner.store(number_);
    std::uint64_t not_to_be_read = 0;
    for (const Extent& gap : between) not_to_be_read |= parts_in(held, gap, false);
    state.read_parts.store(not_to_be_read);
    own_[i] = number;
    state.word.store(word_of(number, Stage::under_way));
    return Fetch{number, memory_.at(*units, transfer)};
  }
  state_->taken.fetch_and(~*units);
  return std::nullopt;
}

bool SharedWindow::end_piece(std::uint64_t number, bool is_there) {
  const auto own = std::ranges::find(own_, number);
  if (own == own_.end()) return false;
  *own = 0;
  WindowPiece& state = state_->pieces[static_cast<std::size_t>(own - own_.begin())];
  const std::uint64_t units = state.units.load();
  std::uint64_t word = word_of(number, Stage::under_way);
  const bool is_kept =
      is_there && state.word.compare_exchange_strong(word, word_of(number, Stage::ready));
  if (!is_kept) {
    word = word_of(number, Stage::under_way);
    bool is_ours = state.word.compare_exchange_strong(word, word_of(number, Stage::free));
    if (!is_ours && word == word_of(number, Stage::abandoned)) {
      is_ours = state.word.compare_exchange_strong(word, word_of(number, Stage::free));
    }
    if (is_ours) state_->taken.fetch_and(~units);
  }
  tell_all();
  return is_kept;
}

bool SharedWindow::advance(Bytes seen, Bytes to) {
  return state_->cursor.compare_exchange_strong(seen, to);
}

void SharedWindow::set_back(Bytes place) {
  Bytes cursor = state_->cursor.load();
  while (place < cursor && !state_->cursor.compare_exchange_weak(cursor, place)) {
  }
}

void SharedWindow::tell_gap(std::optional<Bytes> gap) {
  state_->gap_and_two.store(gap ? *gap + 2 : 1);
}

std::optional<std::optional<Bytes>> SharedWindow::told_gap() const {
  const Bytes told = state_->gap_and_two.load();
  if (told <= 0) return std::nullopt;
  return told == 1 ? std::optional<Bytes>() : std::optional(told - 2);
}

Bytes SharedWindow::longest_transfer() const {
  std::uint64_t lost = state_->taken.load();
  for (const Piece& piece : pieces()) lost &= ~piece.units;
  Bytes longest = 0;
  Bytes run = 0;
  for (Bytes unit = 0; unit < memory_.bytes() / memory_.unit(); ++unit) {
    run = (lost >> static_cast<unsigned>(unit) & 1) != 0 ? 0 : run + 1;
    longest = std::max(longest, run);
  }
  return longest * memory_.unit();
}

void SharedWindow::retire() {
  state_->is_retired.store(1);
  memory_.remove_if([] { return true; });
  tell_all();
}

bool SharedWindow::is_retired() const { return state_->is_retired.load() != 0; }

std::uint32_t SharedWindow::rings() const { return reader(number_).bell.rings.load(); }

void SharedWindow::answer(std::uint32_t seen) {
  WindowReader& own = reader(number_);
  own.answered_ns.store(steady_ns());
  own.bell.wait(seen, between_answers);
}

void SharedWindow::ring(int number) { reader(number).bell.ring(); }

}  // namespace forebay
