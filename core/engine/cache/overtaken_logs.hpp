#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/engine/cache/sidecar.hpp"
#include "core/model/error.hpp"
#include "core/storage/file.hpp"

// docs/formats/sidecar.md

namespace forebay {

// Logs whose bytes were not in their file yet when a program opened it to write. What they hold may
// be older than what the file holds now: no recovery replays it without being told to.

/// Durably: the program `by`, a name unique for all time, is about to write to the file, and `logs`
/// were left by others. Nothing is written where marks say so already, unless it is to be said
/// `anew`, to a recovery which knows of those.
Status mark_overtaken(const Sidecar& sidecar, const std::string& by,
                      const std::vector<std::string>& logs, bool anew = false);

/// Logs that are overtaken, and how often: the more often, the older they are.
Result<std::map<std::string, int>> overtaken_logs(const Sidecar& sidecar);

/// `file`, the one that `logs` are of, as long as none of them is marked more often than is said
/// there: then whatever would change it fails (exists), and what others write is not written over.
/// Marks are looked for before a change, but not again within `interval`, nor within ten times what
/// a look takes.
std::unique_ptr<StorageFile> until_overtaken(std::unique_ptr<StorageFile> file, Sidecar sidecar,
                                             std::map<std::string, int> logs,
                                             std::chrono::milliseconds interval);

/// Marks go of which no log has a notice any more.
Status forget_overtaken(const Sidecar& sidecar);

}  // namespace forebay
