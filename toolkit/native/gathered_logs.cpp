#include "toolkit/native/gathered_logs.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

#include "core/engine/redundancy/lost_logs.hpp"

namespace forebay {
namespace {

/// Segments are far from each other, and checksums keep a processor busy.
constexpr int checks_at_once = 8;

/// What protects logs of the file.
struct Protection {
  std::vector<ParityContents> parity;
  std::map<std::string, ProtectedLog> known;
};

Result<Protection> read_protection(const std::vector<LeftLog>& locked,
                                   const std::vector<const DirtyNotice*>& notices,
                                   const ScanProgress& progress) {
  Protection protection;
  for (const LeftLog& log : locked) {
    if (log.purpose != LogPurpose::protection) continue;
    auto contents = read_parity_log(*log.store, ReadDepth::payloads, progress);
    // One that holds nothing was just begun.
    if (!contents && contents.error().kind == ErrorKind::no_such_file) continue;
    if (!contents) return tl::unexpected(contents.error());
    protection.parity.push_back(std::move(*contents));
  }
  for (const DirtyNotice* notice : notices) {
    tell_flushed(protection.parity, notice->log, notice->flushed);
  }
  protection.known = protected_logs(protection.parity);
  return protection;
}

/// Names of those of `logs` that are not whole. Those that are keep what was read of them.
std::vector<std::string> damaged_logs(const std::vector<LeftLog*>& logs,
                                      const ScanProgress& progress) {
  std::vector<LogParts> parts;
  parts.reserve(logs.size());
  for (const LeftLog* log : logs) parts.push_back({log->store.get()});
  auto contents = read_logs(parts, ReadDepth::payloads, checks_at_once, progress);
  std::vector<std::string> damaged;
  for (std::size_t i = 0; i < logs.size(); ++i) {
    auto& read = contents[i];
    if (read && read->damage.empty()) {
      logs[i]->contents = std::move(*read);
    } else if (read || read.error().kind != ErrorKind::unsupported) {
      damaged.push_back(logs[i]->name);
    }
  }
  return damaged;
}

LeftLog* find(std::vector<LeftLog>& logs, const std::string& name) {
  const auto found = std::ranges::find(logs, name, &LeftLog::name);
  return found == logs.end() ? nullptr : &*found;
}

bool can_be_read(const LeftLog& log) {
  const LogParts parts{log.store.get(), log.remade.get()};
  return read_logs({&parts, 1}, ReadDepth::headers, checks_at_once).front().has_value();
}

class Gathering {
 public:
  Gathering(const FileLogs& logs, std::vector<LeftLog> locked,
            const std::vector<std::string>& replayed, const GatherChoices& choices)
      : logs_(logs), replayed_(replayed), choices_(choices) {
    gathered_.logs = std::move(locked);
    std::ranges::copy_if(logs.missing, std::back_inserter(gathered_.missing),
                         [this](const MissingLog* log) { return !in_file(log->notice.log); });
  }

  Result<GatheredLogs> run(const GatherProgress& progress) {
    auto protection = read_protection(gathered_.logs, notices(), progress.checked);
    if (!protection) return tl::unexpected(protection.error());
    std::vector<std::string> names = take_lost(*protection);
    if (gathered_.missing.empty() || choices_.partial) {
      std::erase_if(names, [this](const std::string& name) { return in_file(name); });
      std::ranges::move(damaged_logs(logs_that_are_in(*protection), progress.checked),
                        std::back_inserter(names));
      if (auto done = rebuild(*protection, names, progress); !done) {
        return tl::unexpected(done.error());
      }
    }
    set_unreadable_apart();
    const auto may_need = [&](const DirtyNotice& notice) {
      return notice.is_protected || protection->known.contains(notice.log);
    };
    gathered_.has_unread_notices = logs_.has_unread_notices;
    for (const MissingLog* log : gathered_.missing) {
      if (may_need(log->notice)) gathered_.needed_for.push_back(*log);
    }
    for (const FoundLog* log : gathered_.unreadable) {
      if (!log->notice || !may_need(*log->notice)) continue;
      gathered_.needed_for.push_back({*log->notice, logs_.file.path, true});
    }
    return std::move(gathered_);
  }

 private:
  std::vector<const DirtyNotice*> notices() const {
    std::vector<const DirtyNotice*> all;
    all.reserve(logs_.missing.size() + logs_.logs.size());
    for (const MissingLog* log : logs_.missing) all.push_back(&log->notice);
    for (const FoundLog* log : logs_.logs) {
      if (log->notice) all.push_back(&*log->notice);
    }
    return all;
  }

  bool in_file(const std::string& log) const {
    return std::ranges::find(replayed_, log) != replayed_.end();
  }

  /// Names of missing logs that are to be made again.
  std::vector<std::string> take_lost(const Protection& protection) {
    std::vector<std::string> names;
    std::erase_if(gathered_.missing, [&](const MissingLog* log) {
      const DirtyNotice& notice = log->notice;
      const bool is_lost = log->is_lost || choices_.lost.names(notice.host, notice.log);
      if (!is_lost || !protection.known.contains(notice.log)) return false;
      names.push_back(notice.log);
      return true;
    });
    return names;
  }

  /// Of which what protects them has something that the file may lack.
  std::vector<LeftLog*> logs_that_are_in(const Protection& protection) {
    std::vector<LeftLog*> logs;
    for (LeftLog& log : gathered_.logs) {
      const auto known = protection.known.find(log.name);
      const bool is_in = known != protection.known.end() && !known->second.clean();
      if (is_in && !in_file(log.name)) logs.push_back(&log);
    }
    return logs;
  }

  Status rebuild(const Protection& protection, const std::vector<std::string>& names,
                 const GatherProgress& progress) {
    if (names.empty()) return {};
    StoresByName left;
    for (const LeftLog& log : gathered_.logs) {
      if (log.purpose == LogPurpose::data) left[log.name] = log.store.get();
    }
    Bytes all = 0;
    for (const std::string& name : names) all += protection.known.at(name).bytes;
    Bytes done = 0;
    auto rebuilt = rebuild_logs(logs_.parity.front()->directory, protection.parity, left, names,
                                choices_.skip_damage, [&](Bytes more) {
                                  done += more;
                                  if (progress.rebuilt) progress.rebuilt(done, all);
                                });
    if (!rebuilt) return tl::unexpected(rebuilt.error());
    gathered_.rebuilt = std::move(rebuilt->report);
    gathered_.rebuilt_logs = static_cast<int>(rebuilt->logs.size());
    for (LeftLog& log : rebuilt->logs) {
      if (log.remade != nullptr) {
        find(gathered_.logs, log.name)->remade = std::move(log.remade);
      } else {
        gathered_.logs.push_back(std::move(log));
      }
    }
    return {};
  }

  void set_unreadable_apart() {
    for (const FoundLog* found : logs_.logs) {
      const LogSummary& summary = found->summary;
      // One that holds nothing goes with the others.
      if (summary.readable || holds_nothing(*found)) continue;
      const LeftLog* const log = find(gathered_.logs, summary.name);
      if (in_file(summary.name) || can_be_read(*log)) continue;
      gathered_.unreadable.push_back(found);
    }
    std::erase_if(gathered_.logs, [this](const LeftLog& log) {
      return std::ranges::any_of(gathered_.unreadable, [&](const FoundLog* found) {
        return found->summary.name == log.name;
      });
    });
  }

  const FileLogs& logs_;
  const std::vector<std::string>& replayed_;
  const GatherChoices& choices_;
  GatheredLogs gathered_;
};

}  // namespace

Result<GatheredLogs> gather(const FileLogs& logs, std::vector<LeftLog> locked,
                            const std::vector<std::string>& replayed, const GatherChoices& choices,
                            const GatherProgress& progress) {
  return Gathering(logs, std::move(locked), replayed, choices).run(progress);
}

}  // namespace forebay
