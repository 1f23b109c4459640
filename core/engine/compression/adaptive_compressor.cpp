#include "core/engine/compression/adaptive_compressor.hpp"

#include <lz4.h>

#include <algorithm>
#include <cstring>
#include <new>

#include "core/storage/piece_walk.hpp"

namespace forebay {
namespace {

using Clock = std::chrono::steady_clock;

constexpr Bytes sample_bytes = 64 * KiB;

/// The first `length` bytes of `pieces`: where they lie, or gathered in `storage`.
std::span<const std::byte> together(std::span<const iovec> pieces, std::size_t length,
                                    std::vector<std::byte>& storage) {
  if (pieces.front().iov_len >= length) {
    return {static_cast<const std::byte*>(pieces.front().iov_base), length};
  }
  storage.resize(length);
  for (std::size_t at = 0; at < length; pieces = pieces.subspan(1)) {
    const std::size_t part = std::min(pieces.front().iov_len, length - at);
    std::memcpy(storage.data() + at, pieces.front().iov_base, part);
    at += part;
  }
  return storage;
}

}  // namespace

std::span<const std::byte> AdaptiveCompressor::encode(std::span<const iovec> pieces,
                                                      std::vector<std::byte>& storage) {
  const Bytes length = total_bytes(pieces);
  auto choice = CompressionPolicy::Choice::plain;
  if (!disabled()) {
    const std::scoped_lock lock(mutex_);
    choice = policy_.next(length);
  }
  if (choice == CompressionPolicy::Choice::sample) {
    measured(pieces, std::min(length, sample_bytes), storage);
    choice = on() ? CompressionPolicy::Choice::compress : CompressionPolicy::Choice::plain;
  }
  if (choice == CompressionPolicy::Choice::plain) return {};
  return measured(pieces, length, storage);
}

/// Compresses the first `length` bytes, and tells the policy what came of it. Empty: they did not
/// get smaller, or there is no memory for it.
std::span<const std::byte> AdaptiveCompressor::measured(std::span<const iovec> pieces, Bytes length,
                                                        std::vector<std::byte>& storage) {
  const auto begin = Clock::now();
  int size = 0;
  try {
    std::vector<std::byte> gathered;
    const auto plain = together(pieces, static_cast<std::size_t>(length), gathered);
    storage.resize(plain.size());
    size = LZ4_compress_default(
        reinterpret_cast<const char*>(plain.data()), reinterpret_cast<char*>(storage.data()),
        static_cast<int>(plain.size()), static_cast<int>(storage.size()) - 1);
  } catch (const std::bad_alloc&) {
    size = 0;
  }
  const std::scoped_lock lock(mutex_);
  policy_.compressed(
      length, size > 0 ? size : length,
      std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - begin).count());
  return std::span<const std::byte>(storage).first(static_cast<std::size_t>(size));
}

void AdaptiveCompressor::passed(Bytes bytes, std::chrono::nanoseconds elapsed) {
  if (disabled()) return;
  const std::scoped_lock lock(mutex_);
  policy_.sent(bytes, elapsed.count());
}

bool AdaptiveCompressor::on() const {
  const std::scoped_lock lock(mutex_);
  return policy_.on();
}

bool expand(std::span<const std::byte> compressed, std::span<std::byte> plain) {
  const int size = LZ4_decompress_safe(
      reinterpret_cast<const char*>(compressed.data()), reinterpret_cast<char*>(plain.data()),
      static_cast<int>(compressed.size()), static_cast<int>(plain.size()));
  return size >= 0 && static_cast<std::size_t>(size) == plain.size();
}

}  // namespace forebay
