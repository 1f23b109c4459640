#include "core/engine/prefetch/node_readers.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdio>
#include <thread>

#include "core/engine/prefetch/named_memory.hpp"
#include "core/engine/prefetch/process_life.hpp"
#include "core/engine/prefetch/steady_time.hpp"
#include "core/plan/fetch_piece.hpp"
#include "core/storage/own_mapping.hpp"

namespace forebay {
namespace {

constexpr std::size_t most_units = 65536;
constexpr std::size_t words = most_units / 64;
constexpr int most_readers = 64;

constexpr std::int64_t longest_turn_ns = 5'000'000;

constexpr std::int64_t between_looks_ns = 200'000'000;

/// All units of all readers are looked at for an answer.
constexpr std::int64_t between_answers_ns = 500'000;

/// So much of what is kept for it a reader may be behind without harm.
constexpr Bytes harmless_part = 2;

Bytes unit_for(Bytes file_size) {
  const auto least = static_cast<std::uint64_t>(file_size) / most_units + 1;
  return std::max(NodeReaders::smallest_unit, static_cast<Bytes>(std::bit_ceil(least)));
}

/// A bit for each unit.
using Units = std::array<std::atomic<std::uint64_t>, words>;

bool test(const Units& bits, std::size_t index) {
  return (bits[index / 64].load() >> (index % 64) & 1) != 0;
}
/// Whether it was not set.
bool set(Units& bits, std::size_t index) {
  const std::uint64_t bit = std::uint64_t{1} << (index % 64);
  return (bits[index / 64].fetch_or(bit) & bit) == 0;
}
/// Whether it was set.
bool clear(Units& bits, std::size_t index) {
  const std::uint64_t bit = std::uint64_t{1} << (index % 64);
  return (bits[index / 64].fetch_and(~bit) & bit) != 0;
}

}  // namespace

struct NodeReaders::Slot {
  std::atomic<std::int32_t> process;  ///< 0: free.
  std::atomic<std::uint64_t> beginning;
  std::atomic<Bytes> kept_most;  ///< Units.
};

struct NodeReaders::Segment {
  std::atomic<std::int32_t> turn;           ///< The process whose turn it is; 0: nobody's.
  std::atomic<std::int32_t> units_brought;  ///< Bits set in `brought`, but for a moment.
  std::atomic<std::int32_t> measurer;       ///< Its number; 0: nobody.
  std::atomic<Bytes> gap_and_one;           ///< What it found out; 0: nothing is joined.
  std::atomic<Bytes> bytes_found;           ///< Of what was asked for, and not brought.
  std::atomic<Bytes> bytes_missing;         ///< Of what was asked for.
  std::array<Slot, most_readers> slots;
  Units brought;
  /// Of each slot. Only those of slots that are taken have memory behind them.
  std::array<Units, most_readers> wanted;

  Units& wanted_by(const Slot& slot) {
    return wanted[static_cast<std::size_t>(&slot - slots.data())];
  }
};
static_assert(std::atomic<std::uint64_t>::is_always_lock_free, "processes share them");

NodeReaders::NodeReaders(const FileVersion& version, Bytes kept_most)
    : file_size_(version.size),
      unit_(unit_for(version.size)),
      kept_most_(std::max<Bytes>(kept_most / unit_, 1)),
      joined_ns_(steady_ns()),
      wait_(kept_most_ / harmless_part) {}

std::unique_ptr<NodeReaders> NodeReaders::join(const FileVersion& version,
                                               const std::vector<Extent>& extents,
                                               Bytes kept_most) {
  std::unique_ptr<NodeReaders> readers(new NodeReaders(version, kept_most));
  if (!readers->enter_shared(version)) readers->enter_alone();
  if (readers->segment_ == nullptr) return nullptr;
  readers->want(extents, kept_most);
  return readers;
}

bool NodeReaders::enter_shared(const FileVersion& version) {
  name_ = NamedMemory::name_for("reads-6", version);
  if (name_.front() == '\0') return false;
  const auto memory = NamedMemory::open(name_.data(), sizeof(Segment));
  const auto give_up = [&] {
    if (memory && memory->is_new()) NamedMemory::remove(name_.data());
    if (segment_ != nullptr) unmap_own(segment_, sizeof(Segment));
    segment_ = nullptr;
    name_ = {};
    return false;
  };
  if (!memory) return give_up();
  inode_ = memory->inode();
  void* place =
      ::mmap(nullptr, sizeof(Segment), PROT_READ | PROT_WRITE, MAP_SHARED, memory->descriptor(), 0);
  if (place == MAP_FAILED) return give_up();
  ::madvise(place, sizeof(Segment), MADV_DONTFORK);
  segment_ = static_cast<Segment*>(place);
  const auto is_backed = [&](const void* begin, std::size_t length) {
    const auto offset = static_cast<const std::byte*>(begin) - static_cast<std::byte*>(place);
    return memory->back({offset, static_cast<Bytes>(length)});
  };
  if (!is_backed(segment_, offsetof(Segment, wanted))) return give_up();
  forget_the_dead();
  const auto free = std::ranges::find_if(segment_->slots,
                                         [](const Slot& slot) { return slot.process.load() == 0; });
  if (free == segment_->slots.end() || !is_backed(&segment_->wanted_by(*free), sizeof(Units))) {
    return give_up();
  }
  slot_ = &*free;
  for (auto& word : segment_->wanted_by(*slot_)) word.store(0);
  slot_->beginning.store(beginning_of(::getpid()));
  slot_->kept_most.store(kept_most_);
  slot_->process.store(::getpid());
  return true;
}

void NodeReaders::enter_alone() {
  void* place = ::mmap(nullptr, sizeof(Segment), PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (place == MAP_FAILED) return;
  segment_ = static_cast<Segment*>(place);
  slot_ = segment_->slots.data();
  slot_->process.store(::getpid());
}

NodeReaders::~NodeReaders() {
  if (segment_ == nullptr) return;
  std::int32_t own = number();
  segment_->measurer.compare_exchange_strong(own, 0);
  own = ::getpid();
  slot_->process.compare_exchange_strong(own, 0);
  if (name_.front() != '\0') {
    NamedMemory::remove_if(name_.data(), inode_, [this] { return readers() == 0; });
  }
  unmap_own(segment_, sizeof(Segment));
}

/// per_unit(index, bytes): of each unit that a part of `extent` lies in, ascending.
template <typename PerUnit>
void NodeReaders::for_units(Extent extent, PerUnit per_unit) const {
  for (Bytes at = extent.offset; at < extent.end();) {
    const Bytes end = std::min(extent.end(), (at / unit_ + 1) * unit_);
    per_unit(static_cast<std::size_t>(at / unit_), end - at);
    at = end;
  }
}

/// Who is only told of keeps none: programs open many files.
void NodeReaders::keep_account() {
  if (!wanted_bytes_.empty()) return;
  const auto units = static_cast<std::size_t>(file_size_ / unit_ + 1);
  passed_.resize((units + 63) / 64);
  wanted_bytes_.resize(units);  // Last: as long as it is empty there may be no memory for them.
}

void NodeReaders::want(const std::vector<Extent>& extents, Bytes kept_most) {
  if (!extents.empty()) keep_account();
  Bytes units = 0;
  Bytes brought_for_them = 0;
  for (const Extent& extent : extents) {
    brought_for_them += transfer_of(extent).length;
    for_units(extent, [&](std::size_t index, Bytes bytes) {
      wanted_bytes_[index] += bytes;
      if (set(segment_->wanted_by(*slot_), index)) ++units;
    });
  }
  // Of pieces that lie apart many units are brought in part.
  if (brought_for_them > 0 && brought_for_them < units * unit_) {
    // No more than it wants: else others would keep it.
    const double parts =
        std::min(1.0, static_cast<double>(kept_most) / static_cast<double>(brought_for_them));
    kept_most_ = std::max(kept_most_, static_cast<Bytes>(parts * static_cast<double>(units)));
    wait_ = CatchUpWait(kept_most_ / harmless_part);
  }
  slot_->kept_most.store(kept_most_);
}

NodeReaders::Turn::Turn(NodeReaders* readers) : readers_(readers) {
  if (readers_ == nullptr) return;
  const std::int64_t start = steady_ns();
  std::atomic<std::int32_t>& turn = readers_->segment_->turn;
  std::int32_t nobody = 0;
  while (!turn.compare_exchange_weak(nobody, ::getpid())) {
    if (steady_ns() - start > longest_turn_ns) {
      turn.store(::getpid());
      return;
    }
    nobody = 0;
    std::this_thread::yield();
  }
}

NodeReaders::Turn::~Turn() {
  if (readers_ == nullptr) return;
  std::int32_t own = ::getpid();  // It may have been taken from this one.
  readers_->segment_->turn.compare_exchange_strong(own, 0);
}

void NodeReaders::brought(Extent extent) {
  for (Bytes at = extent.offset / unit_; at * unit_ < extent.end(); ++at) {
    if (set(segment_->brought, static_cast<std::size_t>(at))) ++segment_->units_brought;
  }
}

void NodeReaders::looked_at(Extent extent, Bytes resident, Bytes missing) {
  for_units(extent, [&](std::size_t index, Bytes bytes) {
    if (test(segment_->brought, index)) resident -= bytes;
  });
  segment_->bytes_found += std::max<Bytes>(resident, 0);
  segment_->bytes_missing += missing;
}

bool NodeReaders::is_cold() const {
  return segment_->bytes_found.load() < segment_->bytes_missing.load();
}

std::vector<Extent> NodeReaders::passed(Extent extent) {
  keep_account();
  std::vector<Extent> result;
  for_units(extent, [&](std::size_t index, Bytes bytes) {
    wanted_bytes_[index] = std::max<Bytes>(wanted_bytes_[index] - bytes, 0);
    pass(index, result);
  });
  give_up_what_is_too_much(result);
  return result;
}

std::vector<Extent> NodeReaders::passed_between(Extent extent) {
  keep_account();
  std::vector<Extent> result;
  for (Bytes at = extent.offset / unit_; at * unit_ < extent.end(); ++at) {
    pass(static_cast<std::size_t>(at), result);
  }
  give_up_what_is_too_much(result);
  return result;
}

void NodeReaders::pass(std::size_t index, std::vector<Extent>& result) {
  if (wanted_bytes_[index] > 0) return;
  if (clear(segment_->wanted_by(*slot_), index)) {
    passed_[index / 64] |= std::uint64_t{1} << (index % 64);
    ++units_passed_;
  }
  if (others_want(index)) {
    kept_.push_back({index, units_passed_});
  } else {
    give_up(index, result);
  }
}

/// The newest goes, which is wanted last, but for what the reader right behind comes for; those so
/// old that nobody comes for them soon go first.
void NodeReaders::give_up_what_is_too_much(std::vector<Extent>& result) {
  if (kept_.empty()) return;  // Who is alone asks nothing of the others.
  const Bytes most = most_brought();
  Bytes nearest = most;
  for (const Bytes behind : behind_) {
    if (behind > 0) nearest = std::min(nearest, behind);
  }
  const auto age = [this](const Kept& kept) { return units_passed_ - kept.passed; };
  while (!kept_.empty() && segment_->units_brought.load() > most) {
    if (const Kept oldest = kept_.front(); age(oldest) > most) {
      kept_.pop_front();
      // Somebody further behind may have brought it again.
      if (!is_soon_wanted(age(oldest))) give_up(oldest.index, result);
      continue;
    }
    const auto far = std::find_if(kept_.rbegin(), kept_.rend(),
                                  [&](const Kept& kept) { return age(kept) > nearest; });
    const auto victim = far == kept_.rend() ? std::prev(kept_.end()) : std::prev(far.base());
    give_up(victim->index, result);
    kept_.erase(victim);
  }
}

/// Of a unit that was passed so many units ago.
bool NodeReaders::is_soon_wanted(Bytes age) const {
  return std::ranges::any_of(
      behind_, [&](Bytes behind) { return behind >= age && behind - age <= kept_most_; });
}

/// Units that all readers together may have brought.
Bytes NodeReaders::most_brought() const {
  Bytes most = 0;
  for (const Slot& slot : segment_->slots) {
    if (slot.process.load() != 0) most += slot.kept_most.load();
  }
  return most;
}

int NodeReaders::slots_taken() const {
  return static_cast<int>(std::ranges::count_if(
      segment_->slots, [](const Slot& slot) { return slot.process.load() != 0; }));
}

Ahead NodeReaders::ahead(std::int64_t now_ns) {
  if (now_ns - answered_ns_ < between_answers_ns) return answer_;
  answered_ns_ = now_ns;
  keep_account();
  behind_.assign(most_readers, 0);
  bool others_want_some = false;
  for (std::size_t i = 0; i < segment_->slots.size(); ++i) {
    const Slot& slot = segment_->slots[i];
    if (&slot == slot_ || slot.process.load() == 0) continue;
    const Units& wanted = segment_->wanted_by(slot);
    for (std::size_t word = 0; word < passed_.size(); ++word) {
      const std::uint64_t units = wanted[word].load();
      others_want_some |= units != 0;
      behind_[i] += std::popcount(passed_[word] & units);
    }
  }
  const bool waits =
      wait_.waits({.passed = units_passed_,
                   .reading_ns = now_ns - joined_ns_,
                   .behind = behind_,
                   .is_full = 4 * Bytes{segment_->units_brought.load()} > 3 * most_brought()});
  answer_ = waits ? Ahead::nothing : others_want_some ? Ahead::half : Ahead::all;
  return answer_;
}

std::vector<Extent> NodeReaders::left() {
  std::vector<Extent> result;
  for (std::size_t index = 0; index < wanted_bytes_.size(); ++index) {
    const bool wanted = clear(segment_->wanted_by(*slot_), index);
    wanted_bytes_[index] = 0;
    if (wanted && !others_want(index)) give_up(index, result);
  }
  for (const Kept& kept : kept_) {
    if (!others_want(kept.index)) give_up(kept.index, result);
  }
  kept_.clear();
  // What was left to somebody who came for it and died has nobody else to give it up.
  for (std::size_t index = 0; index < wanted_bytes_.size(); ++index) {
    const bool was_passed = (passed_[index / 64] >> (index % 64) & 1) != 0;
    if (was_passed && test(segment_->brought, index) && !others_want(index)) give_up(index, result);
  }
  return result;
}

/// Who wants nothing any more and finds nobody else who does gives it up. Of two that pass at the
/// same time at least the later one finds none.
void NodeReaders::give_up(std::size_t index, std::vector<Extent>& result) {
  if (!clear(segment_->brought, index)) return;
  --segment_->units_brought;
  const Extent whole{static_cast<Bytes>(index) * unit_, unit_};
  result.push_back(intersect(whole, {0, file_size_}));
}

bool NodeReaders::others_want(std::size_t index) {
  const auto wants = [&](const Slot& slot) {
    return &slot != slot_ && slot.process.load() != 0 && test(segment_->wanted_by(slot), index);
  };
  if (std::ranges::none_of(segment_->slots, wants)) return false;
  if (steady_ns() - looked_ns_ < between_looks_ns) return true;
  forget_the_dead();
  return std::ranges::any_of(segment_->slots, wants);
}

void NodeReaders::forget_the_dead() {
  looked_ns_ = steady_ns();
  for (Slot& slot : segment_->slots) {
    std::int32_t process = slot.process.load();
    if (process == 0 || &slot == slot_) continue;
    if (has_ended(process, slot.beginning.load())) {
      slot.process.compare_exchange_strong(process, 0);
    }
  }
}

/// Of its slot, from 1 on.
std::int32_t NodeReaders::number() const {
  return static_cast<std::int32_t>(slot_ - segment_->slots.data()) + 1;
}

bool NodeReaders::measures() {
  std::int32_t now = segment_->measurer.load();
  const auto is_there = [&] {
    return now != 0 && segment_->slots[static_cast<std::size_t>(now - 1)].process.load() != 0;
  };
  if (now == number()) return true;
  return !is_there() && segment_->measurer.compare_exchange_strong(now, number());
}

void NodeReaders::tell_gap(std::optional<Bytes> gap) {
  segment_->gap_and_one.store(gap ? *gap + 1 : 0);
}

std::optional<Bytes> NodeReaders::told_gap() const {
  const Bytes told = segment_->gap_and_one.load();
  return told > 0 ? std::optional(told - 1) : std::nullopt;
}

bool NodeReaders::has_company() const {
  const std::int32_t own = slot_->process.load();
  return std::ranges::any_of(segment_->slots, [own](const Slot& slot) {
    const std::int32_t process = slot.process.load();
    return process != 0 && process != own;
  });
}

int NodeReaders::readers() {
  if (name_.front() != '\0') forget_the_dead();
  return slots_taken();
}

}  // namespace forebay
