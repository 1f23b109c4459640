#include "core/engine/redundancy/lost_logs.hpp"

#include <utility>

#include "core/engine/redundancy/remade_store.hpp"

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
  auto made = LogDirectory::create(directory, name);
  if (!made) return made;
  if (auto said = (*made)->say_recovering(); !said) return tl::unexpected(said.error());
  return made;
}

/// What is made of one log.
struct Making {
  LogDirectory* directory = nullptr;  ///< A new log. Null: it is part of a damaged one.
  std::unique_ptr<LogStore> store;
};

Result<Making> make(const std::shared_ptr<CacheDirectory>& directory, const StoresByName& left,
                    const std::string& log) {
  if (const auto damaged = left.find(log); damaged != left.end()) {
    auto part = RemadeStore::make(*damaged->second);
    if (!part) return tl::unexpected(part.error());
    return Making{nullptr, std::move(*part)};
  }
  auto made = make_anew(directory, log);
  if (!made) return tl::unexpected(made.error());
  LogDirectory* const at = made->get();
  return Making{at, std::move(*made)};
}

tl::unexpected<Error> give_up(std::vector<Making>& makings, Error error) {
  for (const Making& making : makings) {
    // What cannot be removed is taken for a log at worst if it is one.
    (void)making.store->destroy();
  }
  return tl::unexpected(std::move(error));
}

}  // namespace

Result<RebuiltLogs> rebuild_logs(const std::shared_ptr<CacheDirectory>& directory,
                                 std::span<const ParityContents> parity, const StoresByName& left,
                                 std::span<const std::string> names, bool accept_missing,
                                 const RebuildProgress& progress) {
  std::vector<Making> made;
  StoresByName lost;
  for (const std::string& name : names) {
    auto making = make(directory, left, name);
    if (!making) return give_up(made, making.error());
    lost[name] = making->store.get();
    made.push_back(std::move(*making));
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
    if (made[i].directory == nullptr) continue;
    if (auto named = made[i].directory->rename_log(names[i]); !named) {
      return give_up(made, named.error());
    }
  }
  for (std::size_t i = 0; i < names.size(); ++i) {
    LeftLog& log = rebuilt.logs.emplace_back();
    log.name = names[i];
    (made[i].directory == nullptr ? log.remade : log.store) = std::move(made[i].store);
  }
  return rebuilt;
}

}  // namespace forebay
