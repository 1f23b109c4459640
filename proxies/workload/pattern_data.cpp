#include "proxies/workload/pattern_data.hpp"

#include <algorithm>
#include <array>
#include <cstring>

namespace workload {
namespace {

constexpr std::size_t word_bytes = sizeof(std::uint64_t);

}  // namespace

PatternData::PatternData(std::uint64_t seed, std::uint64_t version)
    : key_(mix(mix(seed) + version)) {}

void PatternData::fill(std::span<std::byte> memory, std::uint64_t offset) const {
  std::byte* to = memory.data();
  std::size_t left = memory.size();
  std::uint64_t index = offset / word_bytes;
  std::size_t skip = offset % word_bytes;  // Only the first word may start in its middle.
  while (left > 0) {
    const std::uint64_t value = word(index++);
    const std::size_t part = std::min(word_bytes - skip, left);
    std::memcpy(to, reinterpret_cast<const std::byte*>(&value) + skip, part);
    to += part;
    left -= part;
    skip = 0;
  }
}

std::optional<Mismatch> PatternData::check(std::span<const std::byte> memory,
                                           std::uint64_t offset) const {
  std::array<std::byte, 4096> expected;
  for (std::size_t done = 0; done < memory.size();) {
    const auto part = std::min(expected.size(), memory.size() - done);
    fill(std::span(expected).first(part), offset + done);
    if (auto wrong = first_difference(std::span(expected).first(part), memory.subspan(done, part),
                                      offset + done)) {
      return wrong;
    }
    done += part;
  }
  return std::nullopt;
}

std::optional<Mismatch> first_difference(std::span<const std::byte> expected,
                                         std::span<const std::byte> found, std::uint64_t offset) {
  if (std::memcmp(expected.data(), found.data(), expected.size()) == 0) return std::nullopt;
  const auto [want, got] = std::ranges::mismatch(expected, found);
  return Mismatch{Mismatch::Where::file, offset + (want - expected.begin()),
                  std::to_integer<std::uint8_t>(*want), std::to_integer<std::uint8_t>(*got)};
}

std::optional<Mismatch> check_untouched(std::span<const std::byte> memory, std::uint64_t offset) {
  const auto touched = std::ranges::find_if(memory, [](std::byte b) { return b != poison; });
  if (touched == memory.end()) return std::nullopt;
  return Mismatch{Mismatch::Where::halo, offset + (touched - memory.begin()),
                  std::to_integer<std::uint8_t>(poison), std::to_integer<std::uint8_t>(*touched)};
}

}  // namespace workload
