#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "core/model/error.hpp"
#include "testbed/cluster.hpp"

namespace forebay::testbed {

/// What the testbed tells about itself, in its state file and in its counters file. The JSON keys
/// are documented in testbed/README.md.
struct State {
  bool running = true;
  pid_t pid = 0;
  std::string mount;
  std::string backing;
  ClusterParameters parameters;
  bool page_cache = false;
  std::optional<Bytes> read_ahead = 0;  ///< The kernel's, at most; none: it does not tell.
  double uptime_s = 0;
  std::vector<ServerCounters> servers;
};

/// One JSON object and a newline.
std::string to_json(const State& state);

/// Replaces `path` by `content` in one step, so that a reader never meets half of it.
Status replace_file(const std::string& path, const std::string& content);

}  // namespace forebay::testbed
