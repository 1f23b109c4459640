#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/engine/cache/log_writer.hpp"
#include "core/engine/collective/exchange.hpp"
#include "core/engine/redundancy/parity_writer.hpp"
#include "core/engine/redundancy/stripe.hpp"
#include "core/model/error.hpp"
#include "core/plan/protection_groups.hpp"

namespace forebay {

/// Protects the logs of the ranks of one file against the loss of nodes: what each log got goes
/// through the exchange to ranks on other nodes, which keep parity of it. All is done by the ranks'
/// own threads, in calls that all of them make.
///
/// What a step was told of is protected when it returns without an error. After an error nothing
/// more is protected, and what was stays so.
class LogGuard {
 public:
  /// Makes an empty parity log for the piece `piece` of the group `group`, on this rank's node.
  using MakeLog =
      std::function<Result<std::unique_ptr<ParityWriter>>(const std::string& group, int piece)>;

  /// `name`: unique for all time, and the same on all ranks. `exchange` outlives it.
  LogGuard(Exchange& exchange, std::vector<ProtectionGroup> groups, std::string name, MakeLog make);

  /// Collective. Protects what this rank's log got since the last step and is not in the file, all
  /// of it committed, and lets go of what is flushed in all logs of a group. `log`: null as long as
  /// this rank has none. `durable`: parity is made durable on its devices. Errors are those of all
  /// ranks: of the worst kind there is.
  Status step(LogWriter* log, bool durable);

  /// Bytes of `log` that are protected, or would be by a step.
  Bytes length_of(const LogWriter& log) const;
  /// Bytes that this rank sent to others.
  Bytes sent() const { return sent_; }

  /// Nothing is in any log of this rank's groups that the file has not, or else it is to be
  /// protected no more: what parity this rank keeps is removed. No step follows.
  Status remove();

 private:
  /// A piece that this rank keeps.
  struct Kept {
    std::size_t group = 0;
    int piece = 0;
    std::unique_ptr<ParityWriter> log;  ///< Made when there is something to protect.
  };
  /// What all logs of a group have in stripes, and what is flushed of it.
  struct Progress {
    std::map<std::uint64_t, std::map<std::string, std::uint64_t>> until;  ///< By generation.
    std::map<std::string, std::uint64_t> flushed;
  };
  using Lengths = std::map<std::uint64_t, Bytes>;
  class Sending;

  std::string group_name(std::size_t group) const;
  std::vector<Stripe> gather(const LogWriter* log, const LogGrowth& growth);
  bool worth_it(std::size_t group, const Stripe& stripe) const;
  Status keep(Kept& kept, Stripe stripe, Sending& sending);
  Status release(LogWriter* log);

  Exchange& exchange_;
  const std::vector<ProtectionGroup> groups_;
  const std::string name_;
  const MakeLog make_;
  std::vector<Kept> kept_;
  std::vector<Progress> progress_;  ///< By group.
  LogPoint safe_;                   ///< Of this rank's log.
  std::uint64_t told_ = 0;          ///< Up to here its records are said to be flushed.
  Lengths lengths_;                 ///< Of what this rank's log has in stripes, by generation.
  Bytes sent_ = 0;
  std::uint64_t generation_ = 0;
  Error broken_;
};

}  // namespace forebay
