#include "core/engine/cache/overtaken_logs.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include "core/engine/cache/sidecar_entry.hpp"

namespace forebay {
namespace {

constexpr std::string_view mark_ending = ".overtaken";
constexpr EntryKind mark_entry{"forebay overtaken logs", 1};

/// The logs that one mark names. None, if it was removed meanwhile.
Result<std::vector<std::string>> logs_of(const std::string& path) {
  // Anybody who may write the file may say that he has.
  const auto text = get_entry(path, false);
  if (!text) return tl::unexpected(text.error());
  if (!*text) return std::vector<std::string>{};
  const auto content = opened_entry(mark_entry, **text);
  if (!content) return fail_in(path, content.error());
  return listed_logs(*content);
}

}  // namespace

Result<std::map<std::string, int>> overtaken_logs(const Sidecar& sidecar) {
  std::map<std::string, int> times;
  const auto marks = entries_that_end(sidecar.path(), mark_ending);
  if (!marks) return tl::unexpected(marks.error());
  for (const std::string& mark : *marks) {
    const auto logs = logs_of(sidecar.path() + "/" + mark);
    if (!logs) return tl::unexpected(logs.error());
    for (const std::string& log : *logs) ++times[log];
  }
  return times;
}

Status mark_overtaken(const Sidecar& sidecar, const std::string& by,
                      const std::vector<std::string>& logs) {
  const auto known = overtaken_logs(sidecar);
  if (!known) return tl::unexpected(known.error());
  if (std::ranges::all_of(logs, [&](const auto& log) { return known->contains(log); })) return {};
  return put_entry(sidecar.path(), by + std::string(mark_ending),
                   sealed_entry(mark_entry, {{"logs", logs}}), true);
}

Status forget_overtaken(const Sidecar& sidecar) {
  const auto marks = entries_that_end(sidecar.path(), mark_ending);
  if (!marks) return tl::unexpected(marks.error());
  if (marks->empty()) return {};
  const auto notices = sidecar.read();
  if (!notices) return tl::unexpected(notices.error());
  std::set<std::string> there;
  for (const DirtyNotice& notice : notices->notices) there.insert(notice.log);
  for (const std::string& mark : *marks) {
    const auto logs = logs_of(sidecar.path() + "/" + mark);
    if (!logs) return tl::unexpected(logs.error());
    if (std::ranges::any_of(*logs, [&](const auto& log) { return there.contains(log); })) continue;
    if (auto removed = remove_entry(sidecar.path(), mark); !removed) return removed;
  }
  return {};
}

}  // namespace forebay
