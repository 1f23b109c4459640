#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/engine/cache/log_identity.hpp"
#include "core/engine/cache/log_writer.hpp"
#include "core/model/error.hpp"

// docs/formats/parity-log.md

namespace forebay {

/// Bytes [begin, end) of one segment of a log, and what its superblock says of that segment.
struct StripeRange {
  std::uint64_t segment = 0;
  std::uint64_t first_sequence = 0;
  std::uint32_t salt = 0;
  Bytes segment_bytes = 0;
  Bytes begin = 0;
  Bytes end = 0;

  Bytes length() const { return end - begin; }
  bool operator==(const StripeRange&) const = default;
};

/// What one log has in a stripe.
struct StripeMember {
  LogIdentity identity;
  std::vector<StripeRange> ranges;  ///< Ascending; the log's bytes since its last stripe.
  std::uint64_t last_sequence = 0;  ///< Records up to this one are in this stripe or earlier ones.
  std::uint64_t flushed = 0;        ///< Records up to this one were durable in the file.
  std::uint32_t checksum = 0;       ///< CRC-32C of the bytes of all ranges.

  Bytes length() const;
  bool operator==(const StripeMember&) const = default;
};

/// One step of a group of logs that are protected together: what came to each since the step
/// before, one block each, zeros behind the shorter ones; and of these blocks the parity pieces,
/// each in a parity log of its own. A stripe without bytes says only what is flushed.
struct Stripe {
  std::string group;             ///< Names the group: unique among all groups.
  std::uint64_t generation = 0;  ///< Rises from stripe to stripe of a group.
  int piece = 0;                 ///< Which parity piece this is.
  int parities = 1;              ///< How many there are.
  std::vector<StripeMember> members = {};

  /// Of a parity piece, that is of the longest block.
  Bytes length() const;
  /// Another piece of this stripe, or a copy.
  bool same_stripe(const Stripe& other) const;
};

/// What the superblock of the segment was.
Superblock superblock_of(const StripeMember& member, const StripeRange& range);

/// Of what a log appended.
std::vector<StripeRange> ranges_of(std::span<const LogRun> runs);

/// Bytes [offset, offset + length) of the block that `runs` are, in `buffer` or where they lie.
/// Error: io.
Result<std::span<const std::byte>> read_runs(std::span<const LogRun> runs, Bytes offset,
                                             Bytes length, std::vector<std::byte>& buffer);

std::vector<std::byte> encode_stripe(const Stripe& stripe);
/// Error: io, where it is something else or makes no sense.
Result<Stripe> parse_stripe(std::span<const std::byte> bytes);

}  // namespace forebay
