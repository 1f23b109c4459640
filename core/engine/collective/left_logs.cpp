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

struct Found {
  std::vector<std::string> left;     ///< Logs of programs that have ended.
  std::vector<std::string> running;  ///< Of another job, which still writes them.
};

Found find(const FileIdentity& file, const Sidecar& sidecar) {
  Found found;
  const auto notices = sidecar.read();
  if (!notices) return found;
  const std::string job = job_number();
  for (const DirtyNotice& notice : notices->notices) {
    const bool here = on_this_host(notice.host);
    // What was written to a file that is gone is no matter of this one. Each host has numbers of
    // its own for the devices of a network.
    if (!same_file(notice.file, file) || (here && notice.file.device != file.device)) continue;
    const bool same_job = !notice.job.empty() && notice.job == job;
    if (here ? !in_use(notice) : !same_job) {
      found.left.push_back(notice.log);
    } else if (here && !same_job && !notice.job.empty() && !job.empty()) {
      found.running.push_back(notice.log);
    }
  }
  return found;
}

/// "2 write-behind logs of WHOM hold bytes that are not in the file".
std::string told(std::size_t logs, const char* whom) {
  return fmt::format("{} write-behind log{} of {} hold{} bytes that are not in the file", logs,
                     logs == 1 ? "" : "s", whom, logs == 1 ? "s" : "");
}

}  // namespace

std::string warn_of_left_logs(const std::string& path, bool writing) {
  const auto file = identify(path);
  if (!file) return {};
  const Sidecar sidecar(file->path);
  std::error_code ignored;
  if (!std::filesystem::exists(sidecar.path(), ignored)) return {};
  Found found = find(*file, sidecar);
  if (found.left.empty() && found.running.empty()) {
    // Marks of logs that are gone concern nobody; whoever looks next tries again.
    if (writing) (void)forget_overtaken(sidecar);
    return {};
  }
  std::string text;
  if (!found.left.empty()) {
    text = fmt::format(
        "{}; {}: forebay cache recover {}", told(found.left.size(), "an earlier program"),
        writing ? "stop, and bring them there before it is written again" : "bring them there",
        path);
  }
  if (!found.running.empty()) {
    text += fmt::format("{}{} yet: wait until it has closed the file", text.empty() ? "" : "; ",
                        told(found.running.size(), "another job, which is running,"));
  }
  if (!writing) return text;
  std::vector<std::string>& logs = found.left;
  logs.insert(logs.end(), found.running.begin(), found.running.end());
  const auto marked = mark_overtaken(sidecar, new_log_name(), logs);
  if (!marked) {
    text += fmt::format(" (they could not be marked as older than what is written now: {})",
                        to_string(marked.error()));
  }
  return text;
}

}  // namespace forebay
