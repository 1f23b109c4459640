#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "core/engine/cache/log_trial.hpp"
#include "core/plan/cache_pace.hpp"
#include "core/plan/storage_cost.hpp"

namespace forebay {

/// What earlier files of this process showed of their file systems, by the id that the storage room
/// gives a file system: a program that writes one checkpoint a file, in a call or two, would
/// otherwise learn nothing. Thread-safe.
std::optional<CostWord> remembered_cost(std::uint64_t file_system);
void remember_cost(std::uint64_t file_system, const CostWord& cost);

/// What all write-behind logs of this process below a node-local path showed, whose files are of
/// that file system. Thread-safe.
CachePace remembered_pace(std::uint64_t file_system, const std::string& log_path);
/// The comparison of both, which goes on from file to file.
std::shared_ptr<LogTrial> remembered_trial(std::uint64_t file_system, const std::string& log_path);
void remember_pace(std::uint64_t file_system, const std::string& log_path, const CachePace& more);

}  // namespace forebay
