#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/engine/collective/agreed_cost.hpp"
#include "core/engine/collective/call_history.hpp"
#include "core/engine/collective/collective_file.hpp"
#include "core/plan/schedule.hpp"

namespace forebay {

/// How the ranks of a file come to the same plan for a collective call, and keep it: a call like an
/// earlier one costs one small reduction or gather; a new one, a gather of positions; and each view
/// crosses the network once, as a tree.
class CallAgreement {
 public:
  /// `cost` is heard and held with each agreement. What the exchange's ranks agreed on for earlier
  /// files is taken up.
  CallAgreement(Exchange& exchange, AgreedCost& cost, Counters& counters);

  using Setting = CallHistory::Setting;

  /// Collective. Error: internal, on every rank, where what a rank sent is no description of a
  /// call.
  Result<std::shared_ptr<const Schedule>> agree(const Access& access, const Setting& setting);

  CallHistory& history() { return *history_; }

  /// All ranks' views are seamless, as far as the last agreement tells.
  bool all_seamless() const { return all_seamless_; }

 private:
  using Call = CallHistory::Call;

  /// What this rank says of its part.
  CallRecord describe(const Access& access, const StridedTree& tree);
  Call* find_by_reduction(const CallRecord& mine, const CostWord& word, const Setting& setting);
  /// All ranks' records, each with its rank's word of costs, which is heard.
  Result<std::vector<CallRecord>> gather_records(const CallRecord& mine, const CostWord& word);
  /// The schedule of a known call; with another path, if costs have changed since and call for it.
  std::shared_ptr<const Schedule> renewed(Call& known);
  PathQuestion question(const Setting& setting) const;
  /// Makes the trees of `records` known.
  Status gather_trees(const std::vector<CallRecord>& records, const StridedTree& mine);
  Result<std::shared_ptr<const Schedule>> planned(std::vector<CallRecord> records,
                                                  const Setting& setting);

  Exchange& exchange_;
  AgreedCost& cost_;
  Counters& counters_;
  std::shared_ptr<CallHistory> history_;
  bool all_seamless_ = false;
};

}  // namespace forebay
