// Goal: no bytes, whoever sent them, make the decoder of messages about claims misbehave; what it
// accepts is what the encoder writes. Method: the input message by message, as it is and with the
// head and the checksum that a message must have, for random ones are not found by chance.

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <span>

#include "core/engine/cache/crc32c.hpp"
#include "core/engine/cache/little_endian.hpp"
#include "core/engine/collective/claims_message.hpp"

namespace {

void require(bool condition) {
  if (!condition) std::abort();
}

void try_decode(const forebay::ClaimsMessageWire& wire) {
  const auto message = forebay::decode_claims_message(wire);
  if (!message) return;
  require(message->rank >= 0 && message->extent.offset >= 0 && message->extent.length >= 0);
  require(message->extent.end() >= 0);
  require(forebay::encode_claims_message(*message) == wire);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr std::size_t head_bytes = 6;  // Magic and version.
  constexpr std::size_t checksum_bytes = 4;
  const auto valid = forebay::encode_claims_message({});
  for (auto input = std::as_bytes(std::span(data, size));
       input.size() >= forebay::claims_message_bytes;
       input = input.subspan(forebay::claims_message_bytes)) {
    forebay::ClaimsMessageWire wire;
    std::copy_n(input.begin(), wire.size(), wire.begin());
    try_decode(wire);
    std::copy_n(valid.begin(), head_bytes, wire.begin());
    const auto covered = std::span(wire).first(wire.size() - checksum_bytes);
    forebay::store_little_endian(std::span<std::byte>(wire), covered.size(),
                                 forebay::crc32c(covered));
    try_decode(wire);
  }
  return 0;
}
