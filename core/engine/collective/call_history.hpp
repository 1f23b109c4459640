#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/engine/collective/call_record.hpp"
#include "core/model/hints.hpp"
#include "core/model/strided_tree.hpp"
#include "core/model/stripe_layout.hpp"
#include "core/plan/file_domains.hpp"
#include "core/plan/schedule.hpp"

namespace forebay {

/// What the ranks of an exchange told each other of their collective calls, and what was planned
/// for them; the same on every rank at every moment. It outlives a file, so that the next
/// checkpoint, a file of its own, finds the views and plans of the one before.
class CallHistory {
 public:
  /// What a plan depends on beside the ranks' parts.
  struct Setting {
    bool writing = false;
    StripeLayout layout;
    Toggle collective = Toggle::automatic;
    FileDomains domains;
    CachedWrites cached = {};

    bool operator==(const Setting&) const = default;
  };

  struct Call {
    std::vector<CallRecord> records;  ///< By rank.
    Setting setting;
    std::int64_t number = 0;  ///< Of no other call of this history.
    std::shared_ptr<const Schedule> schedule;
    int cost_changes = 0;  ///< When the schedule's path was chosen.
  };

  /// Newest last.
  std::deque<Call>& calls() { return calls_; }

  /// The unit of domains that were fitted to an earlier file's parts; none if they were not.
  std::optional<Bytes> fitted_unit() const { return fitted_unit_; }
  void keep_fitted_unit(std::optional<Bytes> unit) { fitted_unit_ = unit; }

  /// Takes a new call in, and forgets the oldest where there are more than is kept.
  void add(Call call) {
    call.number = ++numbers_;
    calls_.push_back(std::move(call));
    std::size_t rounds = 0;
    for (const Call& kept : calls_) rounds += rounds_of(kept);
    while (calls_.size() > most_calls || (calls_.size() > 1 && rounds > most_rounds)) {
      rounds -= rounds_of(calls_.front());
      calls_.pop_front();
    }
  }

  /// A file begins: what earlier ones found that storage calls cost is not known to hold for it.
  void question_paths() {
    for (Call& call : calls_) call.cost_changes = -1;
  }

  /// Every tree that any rank sent, by fingerprint: so all know without asking what others know.
  std::unordered_map<std::uint64_t, StridedTree>& trees() { return trees_; }
  void bound_trees() {
    if (trees_.size() > most_trees) trees_.clear();
  }

 private:
  static std::size_t rounds_of(const Call& call) {
    const Schedule& schedule = *call.schedule;
    return (schedule.ends == nullptr ? schedule : *schedule.ends).rounds.size();
  }

  static constexpr std::size_t most_calls = 64;
  static constexpr std::size_t most_rounds = std::size_t{1} << 20;  ///< Of all calls; 8 bytes each.
  static constexpr std::size_t most_trees = 4096;

  std::deque<Call> calls_;
  std::int64_t numbers_ = 0;
  std::optional<Bytes> fitted_unit_;
  std::unordered_map<std::uint64_t, StridedTree> trees_;
};

}  // namespace forebay
