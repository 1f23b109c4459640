#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/engine/cache/log_writer.hpp"
#include "core/engine/redundancy/stripe.hpp"
#include "core/model/error.hpp"

// docs/formats/parity-log.md

namespace forebay {

/// Writes one parity piece of a group of logs, stripe by stripe, behind what it wrote before: a
/// stripe that is not finished changes nothing about those that are. It is a log like those it
/// protects, on the storage of a node that has none of them.
class ParityWriter {
 public:
  /// `identity.purpose` is protection. The rest as for LogWriter.
  ParityWriter(std::unique_ptr<LogStore> store, LogIdentity identity, LogSettings settings,
               std::unique_ptr<ResourceHolder> capacity);

  /// Bytes [offset, offset + length) of the block of a member, which has them: in `buffer`, or
  /// where they are.
  using Source = std::function<Result<std::span<const std::byte>>(
      std::size_t member, Bytes offset, Bytes length, std::vector<std::byte>& buffer)>;

  /// Adds a stripe, whose checksums it fills in; its generation is above all earlier ones, whatever
  /// became of them. Asks for blocks in rising order of the offset, for each offset member by
  /// member, in parts of at most part_bytes. It protects when this returns. Errors: no_space (the
  /// capacity), those of the store and of the source; then the stripe is not there.
  Status append(Stripe stripe, const Source& source);

  /// What members hold up to this generation is flushed: their bytes in it are not needed, and say
  /// nothing. A stripe that says how far each of them is flushed was added before.
  Status release(std::uint64_t generation);

  /// What was added is durable on the device.
  Status sync() { return log_.sync(); }
  /// Removes the log.
  Status destroy() { return log_.destroy(); }
  const LogWriter& log() const { return log_; }

  static constexpr Bytes part_bytes = 1 * MiB;

 private:
  Status write(std::span<const std::byte> bytes, Bytes offset, std::uint64_t generation);

  LogWriter log_;
  std::uint64_t generation_ = 0;                      ///< Of the last attempt.
  std::map<std::uint64_t, std::uint64_t> sequences_;  ///< Last of each generation, not released.
};

/// Where the header of a stripe lies among its payloads: behind all parity there could be.
constexpr Bytes stripe_header_offset = Bytes{1} << 60;

}  // namespace forebay
