#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "core/engine/cache/recovery.hpp"
#include "toolkit/native/found_logs.hpp"

// What forebay-cache prints, as docs/guide/command.md has it. Times are seconds, sizes are bytes.

namespace forebay {

/// One word for what a log is: writing, draining, left, incomplete, damaged, clean, empty,
/// begun, unreadable.
std::string state_of(const LogSummary& log);

/// Whether the file that a log is of is still the one at its path: there, replaced, gone,
/// unreachable.
std::string file_state(const FileIdentity& file);

nlohmann::json log_json(const FoundLog& log);
/// With its state: elsewhere, lost, or unseen, where it should be on this node.
nlohmann::json missing_json(const MissingLog& log);
nlohmann::json problem_json(const LogProblem& problem);
nlohmann::json report_json(const RecoveryReport& report);
/// `result` with a state that says why nothing was done, and a message for a person.
nlohmann::json refused(nlohmann::json result, const char* state, const std::string& why);

}  // namespace forebay
