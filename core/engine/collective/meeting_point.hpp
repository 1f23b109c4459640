#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "core/engine/cache/bell.hpp"
#include "core/engine/collective/exchange.hpp"

namespace forebay {

/// What the ranks of one host share to wait for each other, where they outnumber its cores. A tree
/// of messages would have to wake somebody at each of its steps, and MPIs do not wake but poll,
/// which keeps the core from those who are waited for.
///
/// Small gathers: every rank writes its part, and the last one wakes the others, once each. Parts
/// lie in two sets that take turns. Nobody is two gathers ahead of anybody, since each gather needs
/// every rank, so what a slow rank has not read yet is not written over.
///
/// And a bell for each rank, for whatever else it waits for.
class MeetingPoint {
 public:
  /// Of one rank's part of a gather.
  static constexpr std::size_t most_bytes = 256;

  static Bytes region_bytes(int ranks);

  /// `region`: region_bytes(ranks), zeros at first. `keep_going` is called now and then while this
  /// rank waits for a gather: other ranks may need its help before they come.
  MeetingPoint(std::unique_ptr<SharedRegion> region, int rank, int ranks,
               std::function<void()> keep_going);

  /// As Exchange::all_gather, for parts of up to most_bytes.
  void gather(std::span<const std::byte> mine, std::span<std::byte> all);

  Bell& bell(int rank) const;

 private:
  struct Head;

  Head& head() const;
  std::span<std::byte> part(int rank) const;

  std::unique_ptr<SharedRegion> region_;
  const int rank_;
  const int ranks_;
  std::function<void()> keep_going_;
  std::uint32_t gathers_ = 0;  ///< Ended, on this rank; wraps as the rings of a bell do.
};

}  // namespace forebay
