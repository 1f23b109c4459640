#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <unordered_map>
#include <vector>

#include "core/engine/collective/agreed_cost.hpp"
#include "core/engine/collective/call_record.hpp"
#include "core/engine/collective/collective_file.hpp"
#include "core/plan/schedule.hpp"

namespace forebay {

/// How the ranks of a file come to the same plan for a collective call, and keep it: a call like an
/// earlier one costs one small reduction or gather; a new one, a gather of positions; and each view
/// crosses the network once, as a tree.
class CallAgreement {
 public:
  /// `cost` is heard and held with each agreement.
  CallAgreement(Exchange& exchange, AgreedCost& cost, Counters& counters);

  struct Settings {
    bool writing = false;
    StripeLayout layout;
    Toggle collective = Toggle::automatic;
    FileDomains domains;
  };

  /// Collective. The schedule lives as long as this object, or until `most_schedules` newer ones
  /// were made. Error: internal, on every rank, where what a rank sent is no description of a call.
  Result<std::shared_ptr<const Schedule>> agree(const Access& access, const Settings& settings);

  /// All ranks' views are seamless, as far as the last agreement tells.
  bool all_seamless() const { return all_seamless_; }

  /// Forgets all schedules; collective. To be called when hints changed what was decided.
  void forget() { schedules_.clear(); }

 private:
  static constexpr std::size_t most_schedules = 64;
  static constexpr std::size_t most_trees = 4096;

  struct Known {
    std::vector<CallRecord> records;
    bool writing = false;
    std::int64_t number = 0;
    std::shared_ptr<const Schedule> schedule;
    int cost_changes = 0;  ///< When the schedule's path was chosen.
  };

  Known* find_by_reduction(const CallRecord& mine, const CostWord& word, bool writing);
  /// The schedule of a known call; with another path, if costs have changed since and call for it.
  std::shared_ptr<const Schedule> renewed(Known& known, const Settings& settings);
  PathQuestion question(const Settings& settings) const;
  /// Makes the trees of `records` known.
  Status gather_trees(const std::vector<CallRecord>& records, const StridedTree& mine);

  Exchange& exchange_;
  AgreedCost& cost_;
  Counters& counters_;
  std::deque<Known> schedules_;  ///< Newest last; the same on every rank.
  std::int64_t made_ = 0;
  bool all_seamless_ = false;
  /// Every tree that any rank ever sent, by fingerprint: the same on every rank, so that all know
  /// without asking what the others know.
  std::unordered_map<std::uint64_t, StridedTree> trees_;
};

}  // namespace forebay
