#include "core/intercept/mpi/settings.hpp"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <string_view>

namespace forebay {
namespace {

std::string_view environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string_view() : std::string_view(value);
}

Settings read_environment() {
  Settings result;
  if (environment("FOREBAY_MODE") == "observe") result.mode = Mode::observe;
  result.report_dir = environment("FOREBAY_REPORT_DIR");
  result.hints = environment("FOREBAY_HINTS");
  result.intent_path = environment("FOREBAY_INTENT");
  result.count_storage = environment("FOREBAY_COUNT_STORAGE") == "1";
  const std::string_view ranks = environment("FOREBAY_RANKS_PER_NODE");
  std::from_chars(ranks.data(), ranks.data() + ranks.size(), result.ranks_per_node);
  result.ranks_per_node = std::max(0, result.ranks_per_node);
  return result;
}

}  // namespace

const Settings& settings() {
  // Never destroyed: MPI calls may come from the exit handlers of other libraries.
  static const Settings& instance = *new Settings(read_environment());
  return instance;
}

}  // namespace forebay
