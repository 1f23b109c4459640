#pragma once

#include <cstddef>
#include <span>

#include "core/model/error.hpp"
#include "core/model/extent.hpp"

namespace forebay {

/// What a message to readers starts with; the pieces follow, compressed where fewer bytes arrive
/// than `plain_bytes` (docs/formats/messages.md, "Message to readers").
struct ReadMessageHeader {
  Bytes valid_until = 0;  ///< From this offset on the file holds nothing.
  Bytes plain_bytes = 0;  ///< Of the pieces.
};

constexpr Bytes read_header_bytes = 24;

/// Writes the header to the first `read_header_bytes` of `message`.
void encode_read_header(const ReadMessageHeader& header, std::span<std::byte> message);

/// The header of `message`, which is as long as what arrived, where at most `room` bytes of pieces
/// were expected. Error: internal, where the message cannot be what the other rank meant.
Result<ReadMessageHeader> decode_read_header(std::span<const std::byte> message, Bytes room);

}  // namespace forebay
