#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/engine/cache/file_identity.hpp"
#include "core/model/error.hpp"
#include "core/model/stripe_layout.hpp"

// docs/formats/write-behind-log.md, "Superblock"

namespace forebay {

/// Whose log it is, and of which file: the same in all segments of one log.
struct LogIdentity {
  std::string log;  ///< Names the log: unique among all logs.
  FileIdentity file;
  StripeLayout layout;           ///< Of the file: how a replay cuts its writes.
  std::string job;               ///< The batch system's number of the job, or empty.
  std::string host;              ///< The node whose storage holds the log.
  std::int64_t process = 0;      ///< Process number of the writer.
  int rank = 0;                  ///< Of the writer in the file's communicator.
  std::int64_t made_unix_s = 0;  ///< When the log was made.

  bool operator==(const LogIdentity&) const = default;
};

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

/// superblock_bytes bytes. Error: invalid_argument where a path is longer than any system's.
Result<std::vector<std::byte>> encode_superblock(const Superblock& superblock);

/// Errors, with a message for a person: unsupported (another version), io (damaged, or no segment).
Result<Superblock> parse_superblock(std::span<const std::byte> block);

}  // namespace forebay
