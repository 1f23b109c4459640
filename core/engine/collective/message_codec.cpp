#include "core/engine/collective/message_codec.hpp"

#include <lz4.h>

#include <algorithm>
#include <new>

namespace forebay {
namespace {

constexpr Bytes sample_bytes = 64 * KiB;

/// lz4 of `plain` into `storage`; empty if it did not get smaller, or there is no memory for it.
std::span<const std::byte> compress(std::span<const std::byte> plain,
                                    std::vector<std::byte>& storage) {
  try {
    storage.resize(plain.size());
  } catch (const std::bad_alloc&) {
    return {};
  }
  const int size = LZ4_compress_default(
      reinterpret_cast<const char*>(plain.data()), reinterpret_cast<char*>(storage.data()),
      static_cast<int>(plain.size()), static_cast<int>(storage.size()) - 1);
  return {storage.data(), static_cast<std::size_t>(size)};
}

}  // namespace

std::span<const std::byte> MessageCodec::encode(int peer, std::span<const std::byte> plain,
                                                std::vector<std::byte>& storage) {
  if (toggle_ == Toggle::disable) return plain;
  CompressionPolicy& policy = policies_.try_emplace(peer, toggle_).first->second;
  const auto size = static_cast<Bytes>(plain.size());
  const auto measured = [&](std::span<const std::byte> part) {
    const auto begin = std::chrono::steady_clock::now();
    const std::span<const std::byte> small = compress(part, storage);
    const auto wire = small.empty() ? part.size() : small.size();
    policy.compressed(static_cast<Bytes>(part.size()), static_cast<Bytes>(wire),
                      std::chrono::duration_cast<std::chrono::nanoseconds>(
                          std::chrono::steady_clock::now() - begin)
                          .count());
    return small;
  };
  auto choice = policy.next(size);
  if (choice == CompressionPolicy::Choice::sample) {
    measured(plain.first(static_cast<std::size_t>(std::min(size, sample_bytes))));
    choice = policy.on() ? CompressionPolicy::Choice::compress : CompressionPolicy::Choice::plain;
  }
  if (choice == CompressionPolicy::Choice::plain) return plain;
  const std::span<const std::byte> small = measured(plain);
  return small.empty() ? plain : small;
}

void MessageCodec::delivered(int peer, Bytes wire_bytes, std::chrono::nanoseconds elapsed) {
  if (toggle_ == Toggle::disable) return;
  policies_.try_emplace(peer, toggle_).first->second.sent(wire_bytes, elapsed.count());
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
  const int size = LZ4_decompress_safe(
      reinterpret_cast<const char*>(small.data()), reinterpret_cast<char*>(message.data()),
      static_cast<int>(small.size()), static_cast<int>(message.size()));
  if (size != static_cast<int>(message.size())) {
    return tl::unexpected(Error{ErrorKind::io, 0, "a compressed message arrived damaged"});
  }
  return {};
}

int MessageCodec::pairs_on() const {
  return static_cast<int>(std::count_if(policies_.begin(), policies_.end(),
                                        [](const auto& entry) { return entry.second.on(); }));
}

}  // namespace forebay
