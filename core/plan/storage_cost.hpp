#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>

#include "core/model/extent.hpp"
#include "core/model/stripe_layout.hpp"

namespace forebay {

/// What a storage call costs, for choosing between ways of doing the same thing.
struct StorageCost {
  double call_ns = 0;     ///< A call, beside its bytes.
  double byte_ns = 0;     ///< A byte, sequential.
  bool measured = false;  ///< Far above what is expected, as calls on this file showed.

  double of(Bytes bytes) const { return call_ns + static_cast<double>(bytes) * byte_ns; }
};

/// Typical values: a page cache's for files that are not striped (where writers of one file wait
/// for each other and readers do not), a network server's for files that are.
StorageCost expected_cost(const StripeLayout& layout, bool writing);

/// One storage call: what it moved, and how long the caller waited.
struct TimedCall {
  Bytes bytes = 0;
  std::int64_t ns = 0;
};

/// What is believed of a file before its calls are looked at.
struct CostBelief {
  StorageCost expected;  ///< Of its layout, if nobody else uses it.
  StorageCost held;      ///< So far.
  /// A call into a page cache takes up to so many times what is expected when other ranks of the
  /// machine write to the same file, and when there are more ranks than cores.
  double patience = 4;
};

/// What `calls` say of the cost, by means that leave out the slowest eighth, so that calls that
/// were held up once do not matter; those of a file system that takes some calls at once and makes
/// others wait for all do. Calls that are not slower than patience allows say that the cost is as
/// expected, or nothing if they also fit what is held. Of others: where sizes differ enough, the
/// line through the means of the smaller and of the larger ones tells the price of a byte. Where
/// they do not, the price of a call and that of a byte cannot be told apart; the one that makes up
/// most of such a call takes the difference, going by what is held, or at first by a network
/// server's typical figures. If that is a mistake, another path is taken, whose calls have another
/// size. None if there are too few calls to say anything.
///
/// Worked example, held 1 us and 0.4 ns a byte: calls of 64 KiB that take 3 ms make 3 ms a call and
/// leave the byte; calls of 16 MiB that take 1 s make 63 ns a byte and leave the call at 4 ms.
std::optional<StorageCost> fit_cost(std::span<const TimedCall> calls, const CostBelief& belief);

/// A cost in steps of a quarter octave (19 %), as ranks tell it each other: [0] a call, [1] a byte.
/// A step of 0 says nothing.
using CostSteps = std::array<std::uint8_t, 2>;
constexpr std::uint8_t no_step = 0;
CostSteps to_steps(const StorageCost& cost);

/// What one rank says of a file: the steps for writing, then those for reading.
using CostWord = std::array<std::uint8_t, 4>;

/// The cost of one direction that all ranks of a file hold, and how it changes: only when every
/// rank that has something to say is off by more than a factor of four in the same direction, and
/// then by no more than the least of them asks for. So one rank that was held up moves nothing,
/// noise moves nothing, and the result depends only on the lowest and the highest word, which a
/// reduction gives. It never falls below what was expected at the beginning: those figures are of
/// page caches, and no storage call is cheaper.
class HeldCost {
 public:
  /// `start`: what is held at first if it is more than expected, as a file before this one showed.
  explicit HeldCost(const StorageCost& expected, const CostSteps& start = {no_step, no_step});

  const StorageCost& cost() const { return cost_; }
  const CostSteps& steps() const { return steps_; }

  /// `lowest` and `highest` of the ranks' words; no_step where no rank said anything. True if the
  /// cost changed.
  bool hear(const CostSteps& lowest, const CostSteps& highest);

 private:
  void set_cost();

  StorageCost expected_;
  CostSteps expected_steps_;
  CostSteps steps_;
  StorageCost cost_;
};

/// From here on a call is so dear that ranks would rather ask each other first, which takes some
/// microseconds, than each make a call that an exchange may save.
constexpr double slow_call_ns = 200'000;

/// How many storage calls an aggregator keeps under way in the background if no hint says so; 0: it
/// makes them itself. On a striped file several calls keep several servers busy. Elsewhere a
/// thread only pays where the caller would wait and not copy: where a window costs at least twice
/// what is expected of a page cache.
int automatic_io_depth(const StripeLayout& layout, bool writing, const StorageCost& cost,
                       Bytes window_bytes);

}  // namespace forebay
