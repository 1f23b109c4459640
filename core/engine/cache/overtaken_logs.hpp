#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/engine/cache/sidecar.hpp"
#include "core/model/error.hpp"

// docs/formats/sidecar.md

namespace forebay {

// Logs whose bytes were not in their file yet when a program opened it to write. What they hold may
// be older than what the file holds now: no recovery replays it without being told to.

/// Durably: the program `by`, a name unique for all time, is about to write to the file, and `logs`
/// were left by others. Nothing is written where marks say so already.
Status mark_overtaken(const Sidecar& sidecar, const std::string& by,
                      const std::vector<std::string>& logs);

/// Logs that are overtaken, and how often: the more often, the older they are.
Result<std::map<std::string, int>> overtaken_logs(const Sidecar& sidecar);

/// Marks go of which no log has a notice any more.
Status forget_overtaken(const Sidecar& sidecar);

}  // namespace forebay
