#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <vector>

namespace forebay {

/// For tests: bytes that do not repeat and that nothing compresses, always the same for a seed.
inline std::vector<std::byte> noise(std::size_t length, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<std::uint64_t> words(length / sizeof(std::uint64_t) + 1);
  std::ranges::generate(words, random);
  const auto bytes = std::as_bytes(std::span(words)).first(length);
  return {bytes.begin(), bytes.end()};
}

}  // namespace forebay
