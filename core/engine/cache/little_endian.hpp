#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace forebay {

/// Unsigned numbers as they lie in files: lowest byte first, whatever the machine.
template <typename Unsigned>
void store_little_endian(std::span<std::byte> to, std::size_t at, Unsigned value) {
  for (std::size_t i = 0; i < sizeof value; ++i) {
    to[at + i] = static_cast<std::byte>(value >> (8 * i));
  }
}

template <typename Unsigned>
Unsigned load_little_endian(std::span<const std::byte> from, std::size_t at) {
  Unsigned value = 0;
  for (std::size_t i = 0; i < sizeof value; ++i) {
    value |= static_cast<Unsigned>(std::to_integer<Unsigned>(from[at + i]) << (8 * i));
  }
  return value;
}

}  // namespace forebay
