#include "core/engine/collective/cost_memory.hpp"

#include <mutex>
#include <unordered_map>

namespace forebay {
namespace {

struct Memory {
  std::mutex mutex;
  std::unordered_map<std::uint64_t, CostWord> costs;  ///< Guarded by mutex.
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

}  // namespace forebay
