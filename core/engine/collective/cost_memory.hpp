#pragma once

#include <cstdint>
#include <optional>

#include "core/plan/storage_cost.hpp"

namespace forebay {

/// What earlier files of this process showed of their file systems, by the id that the storage room
/// gives a file system: a program that writes one checkpoint a file, in a call or two, would
/// otherwise learn nothing. Thread-safe.
std::optional<CostWord> remembered_cost(std::uint64_t file_system);
void remember_cost(std::uint64_t file_system, const CostWord& cost);

}  // namespace forebay
