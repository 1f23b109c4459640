#include "core/engine/collective/left_logs.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <system_error>
#include <vector>

#include "core/engine/cache/emulated_node.hpp"
#include "core/engine/cache/file_identity.hpp"
#include "core/engine/cache/log_directory.hpp"
#include "core/engine/cache/overtaken_logs.hpp"
#include "core/engine/collective/cache_place.hpp"

namespace forebay {
namespace {

/// By a process of this node.
bool in_use(const DirtyNotice& notice) {
  const std::filesystem::path place = std::filesystem::path(notice.log_path).parent_path();
  const auto directory = CacheDirectory::open(place.string(), CacheDirectory::Access::existing);
  if (!directory) return false;
  const auto log = LogDirectory::open(*directory, notice.log, LogDirectory::Use::look);
  return log && (*log)->in_use();
}

std::vector<std::string> left(const FileIdentity& file, const Sidecar& sidecar,
                              bool open_elsewhere) {
  std::vector<std::string> logs;
  const auto notices = sidecar.read();
  if (!notices) return logs;
  for (const DirtyNotice& notice : notices->notices) {
    const bool here = on_this_host(notice.host);
    // What was written to a file that is gone is no matter of this one. Each host has numbers of
    // its own for the devices of a network.
    if (notice.file.inode != file.inode || (here && notice.file.device != file.device)) continue;
    const bool lives = here ? in_use(notice)
                            : open_elsewhere || (!notice.job.empty() && notice.job == job_number());
    if (!lives) logs.push_back(notice.log);
  }
  return logs;
}

}  // namespace

std::string warn_of_left_logs(const std::string& path, bool writing, bool open_elsewhere) {
  const auto file = identify(path);
  if (!file) return {};
  const Sidecar sidecar(file->path);
  std::error_code ignored;
  if (!std::filesystem::exists(sidecar.path(), ignored)) return {};
  const auto logs = left(*file, sidecar, open_elsewhere);
  if (logs.empty()) {
    // Marks of logs that are gone concern nobody; whoever looks next tries again.
    if (writing) (void)forget_overtaken(sidecar);
    return {};
  }
  std::string text = fmt::format(
      "{} write-behind log{} of an earlier program hold{} bytes that are not in the file; {}: "
      "forebay cache recover {}",
      logs.size(), logs.size() == 1 ? "" : "s", logs.size() == 1 ? "s" : "",
      writing ? "stop, and bring them there before it is written again" : "bring them there", path);
  if (!writing) return text;
  const auto marked = mark_overtaken(sidecar, new_log_name(), logs);
  if (!marked) {
    text += fmt::format(" (they could not be marked as older than what is written now: {})",
                        to_string(marked.error()));
  }
  return text;
}

}  // namespace forebay
