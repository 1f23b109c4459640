#include "core/intercept/mpi/settings.hpp"

#include <mpi.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "core/model/hint_values.hpp"

namespace forebay {
namespace {

std::string_view environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string_view() : std::string_view(value);
}

/// True in the process that speaks for its job. One that has no world speaks for itself.
bool is_first_rank() {
  int has_world = 0, rank = 0;
  PMPI_Initialized(&has_world);
  if (has_world != 0) PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return rank == 0;
}

/// FOREBAY_RANKS_PER_NODE. A word that is no number is told, not guessed at.
int read_ranks_per_node() {
  const std::string text(environment("FOREBAY_RANKS_PER_NODE"));
  const auto ranks = parse_count(text);
  if (!ranks && !text.empty() && is_first_rank()) {
    std::fprintf(stderr,
                 "forebay: FOREBAY_RANKS_PER_NODE=%s has no effect; accepted: a whole number from "
                 "1 up\n",
                 text.c_str());
  }
  return ranks.value_or(0);
}

Settings read_environment() {
  Settings result;
  if (environment("FOREBAY_MODE") == "observe") result.mode = Mode::observe;
  if (environment("FOREBAY_MODE") == "off") result.mode = Mode::off;
  result.report_dir = environment("FOREBAY_REPORT_DIR");
  result.hints = environment("FOREBAY_HINTS");
  result.intent_path = environment("FOREBAY_INTENT");
  result.count_storage = environment("FOREBAY_COUNT_STORAGE") == "1";
  result.ranks_per_node = read_ranks_per_node();
  return result;
}

}  // namespace

const Settings& settings() {
  // Never destroyed: MPI calls may come from the exit handlers of other libraries.
  static const Settings& instance = *new Settings(read_environment());
  return instance;
}

}  // namespace forebay
