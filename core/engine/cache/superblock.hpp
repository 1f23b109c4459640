#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/engine/cache/log_identity.hpp"
#include "core/model/error.hpp"
#include "core/model/extent.hpp"

// docs/formats/write-behind-log.md, "Superblock"

namespace forebay {

/// What stands at the start of every segment.
struct Superblock {
  LogIdentity identity;
  std::uint64_t segment = 0;         ///< Its number; rises by one from segment to segment.
  std::uint64_t first_sequence = 0;  ///< Of the first record in it. Older ones are flushed, or are
                                     ///< in earlier segments.
  Bytes segment_bytes = 0;           ///< Size of the segment, superblock included.
  std::uint32_t salt = 0;            ///< Of the checksums of its record headers.

  bool operator==(const Superblock&) const = default;
};

constexpr Bytes superblock_bytes = 8 * KiB;
constexpr std::uint32_t log_version = 2;
constexpr std::uint32_t parity_log_version = 1;

/// superblock_bytes bytes. Error: invalid_argument where a path is longer than any system's.
Result<std::vector<std::byte>> encode_superblock(const Superblock& superblock);

/// Errors, with a message for a person: unsupported (another version), io (damaged, or no segment).
Result<Superblock> parse_superblock(std::span<const std::byte> block);
/// Whether its beginning is there and zeros are in place of its end: its device got no more of it.
/// Of a log of data.
bool is_cut_short(std::span<const std::byte> block);

}  // namespace forebay
