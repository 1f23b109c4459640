#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/model/extent.hpp"

namespace forebay {

// Readers with the same plan that have memory in common: what one of them has fetched there stays
// until all have passed it. Places are those of PlanPlaces; times are nanoseconds of any one clock.

/// A reader as the others see it.
struct Fellow {
  Bytes front = 0;            ///< All before this place it has passed.
  std::int64_t moved_ns = 0;  ///< When it last read, or asked for what it waits for.
};

/// What is in the common memory.
struct HeldPiece {
  Bytes begin = 0;  ///< The place of what is read first of it,
  Bytes end = 0;    ///< and the one after what is read last.
  bool is_ready = false;
};

/// Which piece makes room for one that begins at the place `wanted`: of those that all have passed
/// the first; else the last, if it is read after the one wanted. Then somebody came who is behind,
/// and for whom it is fetched anew what the others have passed. None: somebody has to read first.
std::optional<std::size_t> piece_to_give_up(std::span<const HeldPiece> held, Bytes tail,
                                            Bytes wanted);

/// Readers further apart than this many times the common memory do not wait for each other.
constexpr Bytes most_windows_apart = 8;

/// Whether a reader at `place` goes together with these: it is no further from any of them than the
/// memory holds, or than whoever is in front then has come in the time that it may wait, after
/// `passed` bytes in `reading_ns`. `window`: the common memory.
bool may_join(Bytes place, std::span<const Fellow> fellows, Bytes passed, std::int64_t reading_ns,
              Bytes window);

/// Whether a process that was asked for a sign of life does not give it: it is stopped, if it is
/// not dead. A busy node lets a thread wait for a processor for some hundredths of a second.
bool is_silent(std::int64_t asked_ns, std::int64_t answered_ns, std::int64_t now_ns);

/// How long one waits for those behind, for whom the memory is kept that the next piece needs, or
/// for whom others are fetched. Who reads nothing for 100 ms meanwhile is stopped, or computes for
/// long, and is waited for no more. All waiting of a reader together takes at most 200 ms and a
/// tenth of its time: of readers that are as fast as each other none is given up, and one that is
/// slower by more than that costs no more.
class LaggardPatience {
 public:
  struct Seen {
    std::span<const Fellow> others;
    Bytes place = 0;              ///< What this one waits for.
    std::int64_t reading_ns = 0;  ///< How long this one has been reading.
    std::int64_t now_ns = 0;
    Bytes window = 0;   ///< The common memory.
    Bytes awaited = 0;  ///< Before all have come to this place there is no room.
  };
  /// It waits, and nothing is on its way: of `others`, those that it goes on without.
  std::vector<std::size_t> given_up(const Seen& seen);

  /// It waits no more, or for the storage.
  void over(std::int64_t now_ns);

 private:
  std::optional<std::int64_t> since_ns_;  ///< Of this wait.
  std::int64_t waited_ns_ = 0;            ///< In all, without this one.
};

}  // namespace forebay
