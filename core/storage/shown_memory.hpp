#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace forebay {

/// Memory of the program that shows files, until the program takes it away. What a thread of ours
/// does there would destroy other memory: it holds the place meanwhile, and who takes it away waits
/// for that. Thread-safe, without a lock, and no call asks for memory: signal handlers and
/// allocators take memory away, too.
class ShownMemory {
  struct Slot;

 public:
  static constexpr std::size_t most = 64;

  /// One place of it. Not to be destroyed while it is held.
  class Place {
   public:
    Place(Place&& other) noexcept;
    Place& operator=(Place&&) = delete;
    ~Place();

    /// False: it was taken away. By one thread at a time, which takes nothing away before it calls
    /// release().
    bool hold();
    void release();

   private:
    friend class ShownMemory;
    Place(Slot* slot, std::uint64_t generation) : slot_(slot), generation_(generation) {}

    Slot* slot_;  ///< Null: it was moved.
    std::uint64_t generation_;
  };

  /// [begin, end) shows a file from now on. None: there are too many.
  std::optional<Place> add(std::uintptr_t begin, std::uintptr_t end);

  /// The places that [begin, end) overlaps are held no more, nor will they be. False: there are
  /// none.
  bool take_away(std::uintptr_t begin, std::uintptr_t end);

 private:
  struct Slot {
    std::atomic<std::uint64_t> word{0};  ///< How often it was used before, and what it is now.
    std::atomic<std::uintptr_t> begin{0};
    std::atomic<std::uintptr_t> end{0};
  };

  std::array<Slot, most> slots_;
};

}  // namespace forebay
