#pragma once

#include <memory>
#include <string>

#include "core/engine/cache/log_writer.hpp"
#include "core/engine/collective/cache_place.hpp"
#include "core/engine/collective/log_guard.hpp"
#include "core/model/counters.hpp"
#include "core/model/hints.hpp"
#include "core/storage/file.hpp"

namespace forebay {

/// Protects the logs of the ranks of one file against the loss of nodes, as the hints ask for it:
/// whenever ranks agree on something, or once at the end of a delay.
class LogProtection {
 public:
  /// Null where `redundancy` asks for none, or more nodes than there are: then `note` says so. The
  /// same on all ranks. `name`: unique for all time, and the same on all ranks. `exchange` outlives
  /// the last agreement, `file` and `counters` the whole.
  static std::unique_ptr<LogProtection> make(Exchange& exchange, const StorageFile& file,
                                             CacheRedundancy redundancy, const std::string& name,
                                             const CachePlace& place, Counters& counters,
                                             std::string& note);

  /// From now on nothing is protected, or all is that comes to be, with the next agreement.
  void delay(bool delayed) { delayed_ = delayed; }
  bool delayed() const { return delayed_; }

  /// What ranks find out about each other before an agreement.
  struct Outlook {
    bool crowded = false;   ///< Logs and parity take so much that the logs are to be flushed first.
    bool needless = false;  ///< No rank will ever have anything in a log again.
  };
  /// Collective. `log` is this rank's, or null; `done`: it will never hold anything again.
  Outlook look(const LogWriter* log, bool done);

  /// Collective. What is in the logs, all of it committed, is protected, `durable` or as long as
  /// nodes do not crash. After an error nothing more is, and the protection is to be ended.
  Status agree(LogWriter* log, bool durable);

  /// The worst of all ranks' errors, on each. Collective.
  Status worst(const Status& mine);

  /// Parity that this rank keeps is removed, and `log` goes on by itself. No agreement follows.
  Status end(LogWriter* log);

 private:
  LogProtection(Exchange& exchange, std::vector<ProtectionGroup> groups, const StorageFile& file,
                const std::string& name, const CachePlace& place, Counters& counters);
  Result<std::unique_ptr<ParityWriter>> make_parity(const std::string& log) const;

  Exchange& exchange_;
  const StorageFile& file_;
  const CachePlace place_;
  Counters& counters_;
  const Bytes budget_;
  LogGuard guard_;
  bool delayed_ = false;
};

}  // namespace forebay
