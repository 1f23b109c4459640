#include "testbed/thread_groups.hpp"

#include <charconv>
#include <fstream>
#include <optional>
#include <string>

namespace forebay::testbed {
namespace {

constexpr Time remembered = std::chrono::seconds(1);
constexpr std::size_t sweep_above = 4096;

std::optional<pid_t> read_tgid(pid_t thread) {
  std::ifstream status("/proc/" + std::to_string(thread) + "/status");
  constexpr std::string_view key = "Tgid:\t";
  for (std::string line; std::getline(status, line);) {
    if (!line.starts_with(key)) continue;
    pid_t process = 0;
    const char* end = line.data() + line.size();
    if (std::from_chars(line.data() + key.size(), end, process).ptr == end) return process;
  }
  return std::nullopt;
}

}  // namespace

pid_t ThreadGroups::process_of(pid_t thread, Time now) {
  const std::lock_guard lock(mutex_);
  Answer& answer = answers_[thread];
  if (answer.until > now) return answer.process;
  const pid_t process = read_tgid(thread).value_or(thread);
  answer = {process, now + remembered};
  if (answers_.size() > sweep_above) {
    std::erase_if(answers_, [&](const auto& entry) { return entry.second.until <= now; });
  }
  return process;
}

}  // namespace forebay::testbed
