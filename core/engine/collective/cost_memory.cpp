#include "core/engine/collective/cost_memory.hpp"

#include <map>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "core/engine/collective/timed_file.hpp"

namespace forebay {
namespace {

struct Memory {
  std::mutex mutex;
  std::unordered_map<std::uint64_t, CostWord> costs;                 ///< Guarded by mutex.
  std::map<std::pair<std::uint64_t, std::string>, CachePace> paces;  ///< The same.
  std::map<std::pair<std::uint64_t, std::string>, std::shared_ptr<LogTrial>> trials;  ///< The same.
};

Memory& memory() {
  // Never destroyed: a program may close files in exit handlers.
  static Memory& instance = *new Memory;
  return instance;
}

}  // namespace

std::optional<CostWord> remembered_cost(std::uint64_t file_system) {
  const std::scoped_lock lock(memory().mutex);
  const auto found = memory().costs.find(file_system);
  return found == memory().costs.end() ? std::nullopt : std::optional(found->second);
}

void remember_cost(std::uint64_t file_system, const CostWord& cost) {
  const std::scoped_lock lock(memory().mutex);
  memory().costs.insert_or_assign(file_system, cost);
}

CachePace remembered_pace(std::uint64_t file_system, const std::string& log_path) {
  const std::scoped_lock lock(memory().mutex);
  const auto found = memory().paces.find({file_system, log_path});
  return found == memory().paces.end() ? CachePace{} : found->second;
}

std::shared_ptr<LogTrial> remembered_trial(std::uint64_t file_system, const std::string& log_path) {
  const std::scoped_lock lock(memory().mutex);
  auto& trial = memory().trials[{file_system, log_path}];
  if (trial == nullptr) trial = std::make_shared<LogTrial>(steady_nanoseconds());
  return trial;
}

void remember_pace(std::uint64_t file_system, const std::string& log_path, const CachePace& more) {
  const std::scoped_lock lock(memory().mutex);
  memory().paces[{file_system, log_path}] += more;
}

}  // namespace forebay
