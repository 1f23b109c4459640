#include "core/engine/collective/shared_claims.hpp"

#include <signal.h>

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <chrono>
#include <string>

#include "core/engine/collective/sign_of_life.hpp"
#include "core/storage/process_space.hpp"

namespace forebay {
namespace {

/// How long to wait before looking whether who was asked still lives.
constexpr std::chrono::nanoseconds between_looks = std::chrono::seconds(1);

/// Words of the states of a question.
constexpr std::uint32_t slot_idle = 0;
constexpr std::uint32_t slot_asked = 1;
constexpr std::uint32_t slot_taken = 2;  ///< Somebody is about to answer it.
constexpr std::uint32_t slot_answered = 3;

void raise(std::atomic<std::int64_t>& value, std::int64_t least) {
  std::int64_t now = value.load();
  while (now < least && !value.compare_exchange_weak(now, least)) {
  }
}

constexpr Bytes rounded_up(Bytes bytes) { return (bytes + 63) / 64 * 64; }

}  // namespace

struct alignas(64) SharedClaims::Header {
  std::atomic<std::uint32_t> flags;
  std::atomic<std::uint32_t> conflicts;
  Bell relay;
  SignOfLife relay_life;
};

/// Of one rank.
struct alignas(64) SharedClaims::Place {
  Bell asked;     ///< Rung for who answers.
  Bell answered;  ///< Rung for the rank as one who asks.
  std::atomic<std::uint32_t> relayed;
  std::atomic<std::uint32_t> open;  ///< From 0 to 1 and back to 0 once.
  std::atomic<std::uint32_t> closing;
  std::atomic<std::uint32_t> gone;
  /// Until the thread that answers holds the sign of its life, by its number alone.
  std::atomic<std::int64_t> process;
  std::atomic<std::uint64_t> process_space;
  SignOfLife life;
  std::atomic<std::int64_t> end;
};

/// The question of one rank, and its answer. `state` hands the rest from one to the other.
struct alignas(64) SharedClaims::Slot {
  std::atomic<std::uint32_t> state;
  std::atomic<std::int32_t> owner;  ///< Who is asked.
  std::uint32_t number;
  Wish wish;
  Extent extent;
  std::uint64_t epoch;
  std::int32_t error_kind;
  std::int32_t error_errno;
  std::uint32_t was_dirty;
};

Bytes SharedClaims::bytes(int ranks) {
  const auto count = static_cast<Bytes>(ranks);
  return rounded_up(sizeof(Header)) + count * static_cast<Bytes>(sizeof(Place) + sizeof(Slot)) +
         places * static_cast<Bytes>(sizeof(std::uint32_t));
}

SharedClaims::SharedClaims(std::span<std::byte> memory, int ranks, int rank, Bytes granule)
    : Claims(granule), memory_(memory), ranks_(ranks), rank_(rank) {
  assert(static_cast<Bytes>(memory.size()) >= bytes(ranks) && granule > 0);
}

SharedClaims::Header& SharedClaims::header() const {
  return *reinterpret_cast<Header*>(memory_.data());
}

SharedClaims::Place& SharedClaims::place(int rank) const {
  std::byte* first = memory_.data() + rounded_up(sizeof(Header));
  return reinterpret_cast<Place*>(first)[rank];
}

SharedClaims::Slot& SharedClaims::slot(int asker) const {
  return reinterpret_cast<Slot*>(&place(ranks_))[asker];
}

std::atomic<std::uint32_t>& SharedClaims::owner_of(std::int64_t granule) const {
  return reinterpret_cast<std::atomic<std::uint32_t>*>(&slot(ranks_))[place_of(granule)];
}

Bell& SharedClaims::asked_bell(int rank) const {
  Place& theirs = place(rank);
  return theirs.relayed.load() != 0 ? relay_bell() : theirs.asked;
}

Bell& SharedClaims::answered_bell(int rank) const {
  Place& theirs = place(rank);
  return theirs.relayed.load() != 0 ? relay_bell() : theirs.answered;
}

std::optional<Claims::Foreign> SharedClaims::first_foreign(Extent extent) const {
  const auto mine = static_cast<std::uint32_t>(rank_ + 1);
  const auto [first, end] = granules_of(extent);
  for (std::int64_t at = first; at < end; ++at) {
    const std::uint32_t owner = owner_of(at).load();
    if (owner == 0 || owner == mine) continue;
    Extent part{at * granule(), 0};
    while (at < end && owner_of(at).load() == owner) ++at;
    part.length = at * granule() - part.offset;
    if (part.length == 0) part.length = granule();  // It changed hands meanwhile.
    return Foreign{static_cast<int>(owner) - 1, part};
  }
  return std::nullopt;
}

Result<std::optional<Claims::Foreign>> SharedClaims::foreign(Extent extent) {
  return first_foreign(extent);
}

Result<std::optional<Claims::Foreign>> SharedClaims::claim(Extent extent) {
  const auto mine = static_cast<std::uint32_t>(rank_ + 1);
  const auto [first, last] = granules_of(extent);
  raise(minus_first_, -first);
  raise(end_, last);
  for (std::int64_t at = first; at < last; ++at) {
    std::uint32_t owner = 0;
    if (owner_of(at).compare_exchange_strong(owner, mine) || owner == mine) continue;
    auto found = first_foreign({at * granule(), extent.end() - at * granule()});
    // If it is given back just now, it is to be had by asking once more.
    return found ? found : Foreign{static_cast<int>(owner) - 1, {at * granule(), granule()}};
  }
  raise(place(rank_).end, extent.end());
  return std::nullopt;
}

void SharedClaims::release(Extent extent) {
  const auto mine = static_cast<std::uint32_t>(rank_ + 1);
  const auto [first, end] = granules_of(extent);
  for (std::int64_t at = first; at < end; ++at) {
    // Most are others', or nobody's: to look does not take the line from those who use it.
    if (owner_of(at).load() != mine) continue;
    auto expected = mine;
    owner_of(at).compare_exchange_strong(expected, 0);
  }
}

void SharedClaims::release_all() {
  const std::int64_t end = end_.load();
  const Bytes first = end == 0 ? 0 : -minus_first_.load();
  release({first * granule(), (end - first) * granule()});
  set_end(0);
}

bool SharedClaims::begin_asking(int rank, const Question& question) {
  // What was never open and is opened now holds nothing yet.
  if (place(rank).open.load() == 0) return false;
  Slot& mine = slot(rank_);
  mine.owner = rank;
  ++mine.number;
  mine.wish = question.wish;
  mine.extent = question.extent;
  mine.state.store(slot_asked);
  asked_bell(rank).ring();
  return true;
}

bool SharedClaims::is_gone(Place& owner) const {
  if (owner.gone.load() != 0) return true;
  if ((owner.relayed.load() != 0 ? header().relay_life : owner.life).is_lost()) return true;
  const auto process = static_cast<pid_t>(owner.process.load());
  return ::kill(process, 0) != 0 && errno == ESRCH && owner.process_space.load() == process_space();
}

std::optional<Claims::Answer> SharedClaims::look_for_answer() {
  Slot& mine = slot(rank_);
  const int rank = mine.owner;
  Place& owner = place(rank);
  // In this order: what is closed answers nothing any more.
  const bool closed = owner.open.load() == 0;
  const bool gone = !closed && mine.state.load() != slot_answered && is_gone(owner);
  if (mine.state.load() == slot_answered) {
    Answer answer{.status = {}, .epoch = mine.epoch, .was_dirty = mine.was_dirty != 0};
    if (mine.error_kind != 0) {
      answer.status = tl::unexpected(
          Error{static_cast<ErrorKind>(mine.error_kind), mine.error_errno,
                "rank " + std::to_string(rank) + " could not bring it from its log to the file"});
    }
    mine.state.store(slot_idle);
    return answer;
  }
  if (!closed && !gone) return std::nullopt;
  mine.state.store(slot_idle);
  if (closed) return Answer{};
  return Answer{
      .status = tl::unexpected(Error{
          ErrorKind::io, 0, "rank " + std::to_string(rank) + ", whose log holds it, is gone"})};
}

Claims::Answer SharedClaims::ask(int rank, const Question& question) {
  if (!begin_asking(rank, question)) return {};
  Bell& bell = answered_bell(rank_);
  for (;;) {
    const std::uint32_t seen = bell.rings.load();
    if (auto answer = look_for_answer()) return *std::move(answer);
    bell.wait(seen, between_looks);
  }
}

Result<std::optional<int>> SharedClaims::next_open(int from) {
  for (int rank = from; rank < ranks_; ++rank) {
    if (place(rank).open.load() != 0) return rank;
  }
  return std::nullopt;
}

void SharedClaims::open(std::int64_t process) {
  Place& mine = place(rank_);
  mine.process.store(process);
  mine.process_space.store(process_space());
  mine.life.prepare();
  mine.open.store(1);
}

void SharedClaims::close() {
  place(rank_).closing.store(1);
  place(rank_).asked.ring();
}

void SharedClaims::reply(int asker, std::uint32_t number, const Answer& answer) {
  Slot& question = slot(asker);
  if (question.state.load() != slot_taken || question.owner != rank_ || question.number != number) {
    return;
  }
  question.epoch = answer.epoch;
  question.was_dirty = answer.was_dirty ? 1 : 0;
  question.error_kind = answer.status ? 0 : static_cast<std::int32_t>(answer.status.error().kind);
  question.error_errno = answer.status ? 0 : answer.status.error().os_errno;
  question.state.store(slot_answered);
  answered_bell(asker).ring();
}

void SharedClaims::answer(const Answering& answering) {
  Place& mine = place(rank_);
  mine.life.hold();
  for (;;) {
    const std::uint32_t seen = mine.asked.rings.load();
    for (int asker = 0; asker < ranks_; ++asker) {
      Slot& question = slot(asker);
      if (question.state.load() != slot_asked || question.owner != rank_) continue;
      question.state.store(slot_taken);
      reply(asker, question.number, answering({question.wish, question.extent}));
    }
    if (mine.closing.load() != 0) {
      shut();
      mine.life.let_go();
      return;
    }
    mine.asked.wait(seen, between_looks);
  }
}

void SharedClaims::shut() {
  place(rank_).open.store(0);
  for (int asker = 0; asker < ranks_; ++asker) answered_bell(asker).ring();
}

void SharedClaims::set_gone() {
  place(rank_).gone.store(1);
  for (int asker = 0; asker < ranks_; ++asker) answered_bell(asker).ring();
}

void SharedClaims::relay() { place(rank_).relayed.store(1); }

Bell& SharedClaims::relay_bell() const { return header().relay; }

SignOfLife& SharedClaims::relay_life() const { return header().relay_life; }

std::optional<SharedClaims::Asked> SharedClaims::take_relayed() {
  for (int asker = 0; asker < ranks_; ++asker) {
    Slot& question = slot(asker);
    if (question.state.load() != slot_asked || place(question.owner).relayed.load() == 0) continue;
    question.state.store(slot_taken);
    return Asked{question.owner, asker, question.number, {question.wish, question.extent}};
  }
  return std::nullopt;
}

Result<Bytes> SharedClaims::end() {
  Bytes end = 0;
  for (int rank = 0; rank < ranks_; ++rank) end = std::max<Bytes>(end, place(rank).end.load());
  return end;
}

void SharedClaims::set_end(Bytes end) { place(rank_).end.store(end); }

std::uint32_t SharedClaims::flags() const { return header().flags.load(); }
void SharedClaims::set_flag(std::uint32_t flag) { header().flags.fetch_or(flag); }
void SharedClaims::clear_flag(std::uint32_t flag) { header().flags.fetch_and(~flag); }
std::uint32_t SharedClaims::count_conflict() { return header().conflicts.fetch_add(1) + 1; }

}  // namespace forebay
