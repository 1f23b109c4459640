#include "core/engine/collective/message_codec.hpp"

#include <algorithm>
#include <new>

namespace forebay {

std::span<const std::byte> MessageCodec::encode(int peer, std::span<const std::byte> plain,
                                                std::vector<std::byte>& storage) {
  if (toggle_ == Toggle::disable) return plain;
  AdaptiveCompressor& compressor = peers_.try_emplace(peer, toggle_).first->second;
  const iovec piece{const_cast<std::byte*>(plain.data()), plain.size()};
  const std::span<const std::byte> small = compressor.encode({&piece, 1}, storage);
  return small.empty() ? plain : small;
}

void MessageCodec::delivered(int peer, Bytes wire_bytes, std::chrono::nanoseconds elapsed) {
  if (toggle_ == Toggle::disable) return;
  peers_.try_emplace(peer, toggle_).first->second.passed(wire_bytes, elapsed);
}

Status MessageCodec::decode(std::span<std::byte> message, Bytes received) {
  if (received == static_cast<Bytes>(message.size())) return {};
  if (received < 0 || received > static_cast<Bytes>(message.size())) {
    return tl::unexpected(Error{ErrorKind::io, 0, "a message arrived longer than it was"});
  }
  std::vector<std::byte> small;
  try {
    small.assign(message.begin(), message.begin() + received);
  } catch (const std::bad_alloc&) {
    return tl::unexpected(Error{ErrorKind::no_memory, 0, "to decompress a message"});
  }
  if (!expand(small, message)) {
    return tl::unexpected(Error{ErrorKind::io, 0, "a compressed message arrived damaged"});
  }
  return {};
}

int MessageCodec::pairs_on() const {
  return static_cast<int>(std::count_if(peers_.begin(), peers_.end(),
                                        [](const auto& entry) { return entry.second.on(); }));
}

}  // namespace forebay
