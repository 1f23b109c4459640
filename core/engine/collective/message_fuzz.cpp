// Goal: no message between nodes, whatever it holds, makes its receiver leave the buffer; what
// expands, expands to the size that was announced. Method: the first bytes of the input choose the
// room that the receiver has and the plain size that the header announces, the rest is what
// arrived; once as it is and once behind a header that is right.

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <span>
#include <vector>

#include "core/engine/collective/message_codec.hpp"
#include "core/engine/collective/read_message.hpp"

namespace {

using forebay::Bytes;

void require(bool condition) {
  if (!condition) std::abort();
}

/// As a courier receives it: into a buffer with room for the header and `room` bytes.
void receive(std::span<const std::byte> wire, Bytes room) {
  const auto capacity = static_cast<std::size_t>(forebay::read_header_bytes + room);
  if (wire.size() > capacity) return;  // The MPI refuses it as truncated.
  // Exactly as large as it may be, so that the sanitizer sees what leaves it.
  std::vector<std::byte> buffer(capacity);
  std::copy(wire.begin(), wire.end(), buffer.begin());
  const auto header = forebay::decode_read_header(std::span(buffer.data(), wire.size()), room);
  if (!header) return;
  require(header->plain_bytes >= 0 && header->plain_bytes <= room);
  const std::span<std::byte> pieces(buffer.data() + forebay::read_header_bytes,
                                    static_cast<std::size_t>(header->plain_bytes));
  (void)forebay::MessageCodec::decode(pieces,
                                      static_cast<Bytes>(wire.size()) - forebay::read_header_bytes);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 4) return 0;
  const Bytes room = data[0] | data[1] << 8;
  const Bytes plain = data[2] | data[3] << 8;
  const auto rest = std::as_bytes(std::span(data, size)).subspan(4);
  receive(rest, room);

  std::vector<std::byte> headed(static_cast<std::size_t>(forebay::read_header_bytes));
  forebay::encode_read_header({.valid_until = 1, .plain_bytes = plain}, headed);
  headed.insert(headed.end(), rest.begin(), rest.end());
  receive(headed, room);

  // A message to an aggregator has no header: its plain size is known beforehand.
  std::vector<std::byte> message(static_cast<std::size_t>(room));
  std::copy_n(rest.begin(), std::min(rest.size(), message.size()), message.begin());
  (void)forebay::MessageCodec::decode(message, static_cast<Bytes>(rest.size()));
  return 0;
}
