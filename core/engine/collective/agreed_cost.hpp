#pragma once

#include <array>
#include <cstddef>
#include <span>

#include "core/engine/collective/timed_file.hpp"
#include "core/model/stripe_layout.hpp"
#include "core/plan/storage_cost.hpp"

namespace forebay {

/// What storage calls on one file cost, the same on every rank at every moment: it begins with what
/// is expected of the file's layout, and moves when ranks have heard each other's words in the
/// agreement on a call.
///
/// On a striped file nothing is measured: its servers and locks are paid for when data is flushed,
/// which the calls do not show.
class AgreedCost {
 public:
  /// `ranks_on_host` ranks make calls on this machine, and may wait for each other. `start` is what
  /// outlook() said of an earlier file on the same file system, no_step where nothing is known; the
  /// same on every rank.
  AgreedCost(const StripeLayout& layout, TimedFile& file, int ranks_on_host, const CostWord& start);

  const StorageCost& of(bool writing) const { return (writing ? writing_ : reading_).cost(); }
  /// What the next file on the same file system may start with: what is held, and what this rank
  /// alone measured since it last spoke. To be called last.
  CostWord outlook();
  /// Goes up with each change: a decision made at the same number still holds.
  int changes() const { return changes_; }

  /// This rank's word: what it measured, silent where there is little new since its last word, so
  /// that a rank that makes no calls any more does not go on speaking of old ones.
  CostWord speak();

  /// The words of all ranks.
  void hear(std::span<const CostWord> words);

  /// The same by a reduction (minimum) over all ranks of what contribute() gives.
  using Contribution = std::array<std::int64_t, 8>;
  static Contribution contribute(const CostWord& word);
  void hear(const Contribution& reduced);

 private:
  StripeLayout layout_;
  TimedFile& file_;
  double patience_;
  HeldCost writing_;
  HeldCost reading_;
  int changes_ = 0;
};

}  // namespace forebay
