#include "core/storage/shown_memory.hpp"

#include <sys/syscall.h>
#include <unistd.h>

#include <ctime>
#include <utility>

namespace forebay {
namespace {

/// Leaving: held, and taken away by somebody who waits.
enum Stage : std::uint64_t { unused, claimed, there, held, leaving };
constexpr std::uint64_t stages = 8;

std::uint64_t word_of(std::uint64_t generation, Stage stage) { return generation * stages + stage; }
std::uint64_t generation_in(std::uint64_t word) { return word / stages; }
Stage stage_in(std::uint64_t word) { return static_cast<Stage>(word % stages); }

/// For one that lasts for a system call of another thread, which may have no processor. Not by the
/// C library's call, at which a thread can be cancelled.
void wait_a_moment() {
  const timespec moment{0, 20'000};
  ::syscall(SYS_nanosleep, &moment, nullptr);
}

}  // namespace

ShownMemory::Place::Place(Place&& other) noexcept
    : slot_(std::exchange(other.slot_, nullptr)), generation_(other.generation_) {}

ShownMemory::Place::~Place() {
  if (slot_ == nullptr) return;
  std::uint64_t own = word_of(generation_, there);
  slot_->word.compare_exchange_strong(own, word_of(generation_ + 1, unused));
}

bool ShownMemory::Place::hold() {
  std::uint64_t own = word_of(generation_, there);
  return slot_->word.compare_exchange_strong(own, word_of(generation_, held));
}

void ShownMemory::Place::release() {
  std::uint64_t own = word_of(generation_, held);
  if (slot_->word.compare_exchange_strong(own, word_of(generation_, there))) return;
  slot_->word.store(word_of(generation_ + 1, unused));
}

std::optional<ShownMemory::Place> ShownMemory::add(std::uintptr_t begin, std::uintptr_t end) {
  for (Slot& slot : slots_) {
    std::uint64_t word = slot.word.load();
    const std::uint64_t generation = generation_in(word);
    if (stage_in(word) != unused) continue;
    if (!slot.word.compare_exchange_strong(word, word_of(generation, claimed))) continue;
    slot.begin.store(begin);
    slot.end.store(end);
    slot.word.store(word_of(generation, there));
    return Place(&slot, generation);
  }
  return std::nullopt;
}

bool ShownMemory::take_away(std::uintptr_t begin, std::uintptr_t end) {
  bool is_any = false;
  for (Slot& slot : slots_) {
    for (;;) {
      std::uint64_t word = slot.word.load();
      const Stage stage = stage_in(word);
      // Memory that is being added is not known to who could take it away.
      if (stage == unused || stage == claimed) break;
      if (slot.begin.load() >= end || slot.end.load() <= begin) break;
      is_any = true;
      const std::uint64_t generation = generation_in(word);
      if (stage == there) {
        if (slot.word.compare_exchange_strong(word, word_of(generation + 1, unused))) break;
        continue;
      }
      if (stage == held) slot.word.compare_exchange_strong(word, word_of(generation, leaving));
      wait_a_moment();
    }
  }
  return is_any;
}

}  // namespace forebay
