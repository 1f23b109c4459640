#include "core/engine/redundancy/lost_logs.hpp"

#include <utility>

namespace forebay {
namespace {

/// Those of CacheDirectory::logs() do not begin with a dot.
std::string name_meanwhile(const std::string& log) { return ".rebuilding-" + log; }

Result<std::unique_ptr<LogDirectory>> make_anew(const std::shared_ptr<CacheDirectory>& directory,
                                                const std::string& log) {
  const std::string name = name_meanwhile(log);
  if (auto stale = LogDirectory::open(directory, name, LogDirectory::Use::replace)) {
    if (auto gone = (*stale)->destroy(); !gone) return tl::unexpected(gone.error());
  } else if (stale.error().kind != ErrorKind::no_such_file) {
    return tl::unexpected(stale.error());
  }
  return LogDirectory::create(directory, name);
}

tl::unexpected<Error> give_up(std::vector<std::unique_ptr<LogDirectory>>& made, Error error) {
  for (auto& log : made) {
    // What cannot be removed is taken for a log at worst if it is one.
    (void)log->destroy();
  }
  return tl::unexpected(std::move(error));
}

}  // namespace

Result<RebuiltLogs> rebuild_logs(const std::shared_ptr<CacheDirectory>& directory,
                                 std::span<const ParityContents> parity, const StoresByName& left,
                                 std::span<const std::string> names, bool accept_missing,
                                 const RebuildProgress& progress) {
  std::vector<std::unique_ptr<LogDirectory>> made;
  StoresByName lost;
  for (const std::string& name : names) {
    auto log = make_anew(directory, name);
    if (!log) return give_up(made, log.error());
    lost[name] = log->get();
    made.push_back(std::move(*log));
  }
  auto report = rebuild(parity, left, lost, progress);
  if (!report) return give_up(made, report.error());
  if (!report->missing.empty() && !accept_missing) {
    std::string what;
    for (const std::string& missing : report->missing) what += (what.empty() ? "" : "; ") + missing;
    return give_up(made, {ErrorKind::io, 0, std::move(what)});
  }
  RebuiltLogs rebuilt;
  rebuilt.report = std::move(*report);
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (auto named = made[i]->rename_log(names[i]); !named) return give_up(made, named.error());
  }
  for (std::size_t i = 0; i < names.size(); ++i) {
    rebuilt.logs.push_back({.name = names[i], .store = std::move(made[i])});
  }
  return rebuilt;
}

}  // namespace forebay
