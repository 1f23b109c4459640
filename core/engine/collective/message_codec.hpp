#pragma once

#include <chrono>
#include <map>
#include <span>
#include <vector>

#include "core/engine/compression/adaptive_compressor.hpp"
#include "core/model/error.hpp"

namespace forebay {

/// Compresses messages between nodes where that pays (lz4), pair of ranks by pair of ranks. A
/// message on the wire needs no header: the receiver knows its plain size from the schedule, and
/// what arrives shorter is compressed (docs/formats/messages.md, "Payload").
class MessageCodec {
 public:
  explicit MessageCodec(Toggle toggle) : toggle_(toggle) {}

  /// What to send to `peer` for `plain`: `plain` itself, or a compressed copy held in `storage`.
  std::span<const std::byte> encode(int peer, std::span<const std::byte> plain,
                                    std::vector<std::byte>& storage);

  /// The message of `wire_bytes` to `peer` was taken after `elapsed`: tells how fast the link is.
  void delivered(int peer, Bytes wire_bytes, std::chrono::nanoseconds elapsed);

  /// Expands a message in place: `message` holds `received` bytes and has the plain size.
  /// Error: io, if what arrived is not what encode() makes.
  static Status decode(std::span<std::byte> message, Bytes received);

  /// Pairs that compress now, for the report.
  int pairs_on() const;

 private:
  Toggle toggle_;
  std::map<int, AdaptiveCompressor> peers_;
};

}  // namespace forebay
