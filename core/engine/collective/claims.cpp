#include "core/engine/collective/claims.hpp"

#include <signal.h>
#include <sys/stat.h>

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <string>

namespace forebay {
namespace {

/// Places of the table. With granules of 512 KiB, 128 GiB of a file have places of their own.
constexpr std::int64_t places = std::int64_t{256} * 1024;

/// How long to wait before looking whether who was asked still lives.
constexpr std::chrono::nanoseconds between_looks = std::chrono::seconds(1);

/// Words of the states of a question.
constexpr std::uint32_t idle = 0;
constexpr std::uint32_t asked = 1;
constexpr std::uint32_t answered = 2;

/// In which space of process numbers this process has its own: containers have several.
std::uint64_t process_space() {
  struct stat space = {};
  return ::stat("/proc/self/ns/pid", &space) == 0 ? space.st_ino : 0;
}

constexpr Bytes rounded_up(Bytes bytes) { return (bytes + 63) / 64 * 64; }

}  // namespace

struct alignas(64) Claims::Header {
  std::atomic<std::uint32_t> flags;
  std::atomic<std::uint32_t> conflicts;
};

/// Of one rank.
struct alignas(64) Claims::Place {
  Bell asked;     ///< Rung for who answers.
  Bell answered;  ///< Rung for the rank as one who asks.
  std::atomic<std::uint32_t> open;
  std::atomic<std::uint32_t> closing;
  std::atomic<std::int64_t> process;
  std::atomic<std::uint64_t> process_space;
  std::atomic<std::int64_t> end;
};

/// A question of one rank to another one, and its answer. `state` hands the rest from one to the
/// other.
struct Claims::Slot {
  std::atomic<std::uint32_t> state;
  Wish wish;
  Extent extent;
  std::uint64_t epoch;
  std::int32_t error_kind;
  std::int32_t error_errno;
  std::uint32_t was_dirty;
};

Bytes Claims::bytes(int ranks) {
  const auto count = static_cast<Bytes>(ranks);
  return rounded_up(sizeof(Header)) + count * static_cast<Bytes>(sizeof(Place)) +
         rounded_up(count * count * static_cast<Bytes>(sizeof(Slot))) +
         places * static_cast<Bytes>(sizeof(std::uint32_t));
}

Claims::Claims(std::span<std::byte> memory, int ranks, int rank, Bytes granule)
    : memory_(memory), ranks_(ranks), rank_(rank), granule_(granule) {
  assert(static_cast<Bytes>(memory.size()) >= bytes(ranks) && granule > 0);
}

Claims::Place& Claims::place(int rank) const {
  std::byte* first = memory_.data() + rounded_up(sizeof(Header));
  return reinterpret_cast<Place*>(first)[rank];
}

Claims::Slot& Claims::slot(int owner, int asker) const {
  auto* first = reinterpret_cast<std::byte*>(&place(ranks_));
  return reinterpret_cast<Slot*>(
      first)[static_cast<std::size_t>(owner) * static_cast<std::size_t>(ranks_) +
             static_cast<std::size_t>(asker)];
}

std::atomic<std::uint32_t>& Claims::owner_of(std::int64_t granule) const {
  const auto count = static_cast<Bytes>(ranks_);
  auto* first = reinterpret_cast<std::byte*>(&place(ranks_)) +
                rounded_up(count * count * static_cast<Bytes>(sizeof(Slot)));
  return reinterpret_cast<std::atomic<std::uint32_t>*>(first)[granule % places];
}

Extent Claims::granules(Extent extent) const {
  const Bytes begin = extent.offset / granule_ * granule_;
  const Bytes end = (extent.end() + granule_ - 1) / granule_ * granule_;
  return {begin, end - begin};
}

bool Claims::shares_places(Bytes end) const { return end > places * granule_; }

std::optional<Claims::Foreign> Claims::foreign(Extent extent) const {
  const auto mine = static_cast<std::uint32_t>(rank_ + 1);
  for (Bytes at = extent.offset / granule_; at * granule_ < extent.end(); ++at) {
    const std::uint32_t owner = owner_of(at).load();
    if (owner == 0 || owner == mine) continue;
    Extent part{at * granule_, 0};
    while (at * granule_ < extent.end() && owner_of(at).load() == owner) ++at;
    part.length = at * granule_ - part.offset;
    if (part.length == 0) part.length = granule_;  // It changed hands meanwhile.
    return Foreign{static_cast<int>(owner) - 1, part};
  }
  return std::nullopt;
}

std::optional<Claims::Foreign> Claims::claim(Extent extent) {
  const auto mine = static_cast<std::uint32_t>(rank_ + 1);
  for (Bytes at = extent.offset / granule_; at * granule_ < extent.end(); ++at) {
    std::uint32_t owner = 0;
    if (owner_of(at).compare_exchange_strong(owner, mine) || owner == mine) continue;
    auto found = foreign({at * granule_, extent.end() - at * granule_});
    // If it is given back just now, it is to be had by asking once more.
    return found ? found : Foreign{static_cast<int>(owner) - 1, {at * granule_, granule_}};
  }
  return std::nullopt;
}

void Claims::release(Extent extent) {
  // More granules than places would only meet the same places again.
  const Bytes first = extent.offset / granule_;
  for (Bytes at = first; at * granule_ < extent.end() && at < first + places; ++at) {
    auto mine = static_cast<std::uint32_t>(rank_ + 1);
    owner_of(at).compare_exchange_strong(mine, 0);
  }
}

void Claims::release_all() { release({0, places * granule_}); }

Claims::Answer Claims::ask(int rank, const Question& question) {
  Place& owner = place(rank);
  if (owner.open.load() == 0) return {};
  Slot& mine = slot(rank, rank_);
  Bell& bell = place(rank_).answered;
  mine.wish = question.wish;
  mine.extent = question.extent;
  mine.state.store(asked);
  owner.asked.ring();
  for (;;) {
    const std::uint32_t seen = bell.rings.load();
    if (mine.state.load() == answered) break;
    bell.wait(seen, between_looks);
    if (owner.open.load() == 0 && mine.state.load() == asked) {
      mine.state.store(idle);
      return {};
    }
    const auto process = static_cast<pid_t>(owner.process.load());
    const bool gone =
        ::kill(process, 0) != 0 && errno == ESRCH && owner.process_space.load() == process_space();
    if (gone && mine.state.load() == asked) {
      mine.state.store(idle);
      return {
          .status = tl::unexpected(Error{
              ErrorKind::io, 0, "rank " + std::to_string(rank) + ", whose log holds it, is gone"})};
    }
  }
  Answer answer{.status = {}, .epoch = mine.epoch, .was_dirty = mine.was_dirty != 0};
  if (mine.error_kind != 0) {
    answer.status = tl::unexpected(
        Error{static_cast<ErrorKind>(mine.error_kind), mine.error_errno,
              "rank " + std::to_string(rank) + " could not bring it from its log to the file"});
  }
  mine.state.store(idle);
  return answer;
}

void Claims::open(std::int64_t process) {
  Place& mine = place(rank_);
  mine.process.store(process);
  mine.process_space.store(process_space());
  mine.open.store(1);
}

void Claims::close() {
  place(rank_).closing.store(1);
  place(rank_).asked.ring();
}

void Claims::answer(const Answering& answering) {
  Place& mine = place(rank_);
  for (;;) {
    const std::uint32_t seen = mine.asked.rings.load();
    for (int asker = 0; asker < ranks_; ++asker) {
      Slot& question = slot(rank_, asker);
      if (question.state.load() != asked) continue;
      const Answer answer = answering({question.wish, question.extent});
      question.epoch = answer.epoch;
      question.was_dirty = answer.was_dirty ? 1 : 0;
      question.error_kind =
          answer.status ? 0 : static_cast<std::int32_t>(answer.status.error().kind);
      question.error_errno = answer.status ? 0 : answer.status.error().os_errno;
      question.state.store(answered);
      place(asker).answered.ring();
    }
    if (mine.closing.load() != 0) {
      mine.open.store(0);
      for (int asker = 0; asker < ranks_; ++asker) place(asker).answered.ring();
      return;
    }
    mine.asked.wait(seen, between_looks);
  }
}

Bytes Claims::end() const {
  Bytes end = 0;
  for (int rank = 0; rank < ranks_; ++rank) end = std::max<Bytes>(end, place(rank).end.load());
  return end;
}

void Claims::raise_end(Bytes end) {
  auto& mine = place(rank_).end;
  std::int64_t now = mine.load();
  while (now < end && !mine.compare_exchange_weak(now, end)) {
  }
}

void Claims::reset_end() { place(rank_).end.store(0); }

std::uint32_t Claims::flags() const {
  return reinterpret_cast<const Header*>(memory_.data())->flags.load();
}
void Claims::set_flag(std::uint32_t flag) {
  reinterpret_cast<Header*>(memory_.data())->flags.fetch_or(flag);
}
void Claims::clear_flag(std::uint32_t flag) {
  reinterpret_cast<Header*>(memory_.data())->flags.fetch_and(~flag);
}
std::uint32_t Claims::count_conflict() {
  return reinterpret_cast<Header*>(memory_.data())->conflicts.fetch_add(1) + 1;
}

}  // namespace forebay
