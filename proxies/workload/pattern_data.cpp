#include "proxies/workload/pattern_data.hpp"

#include <algorithm>
#include <array>
#include <cstring>

namespace workload {
namespace {

constexpr std::size_t word_bytes = sizeof(std::uint64_t);

}  // namespace

PatternData::PatternData(std::uint64_t seed, std::uint64_t version, std::uint64_t stream)
    : key_(mix(mix(mix(seed) + version) + stream)) {}

PatternData PatternData::stream(std::uint64_t number) const {
  return PatternData(mix(key_ ^ mix(number + 1)));
}

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
    if (std::memcmp(expected.data(), memory.data() + done, part) != 0) {
      const auto found = memory.subspan(done, part);
      const auto [want, got] = std::mismatch(expected.begin(), expected.begin() + part,
                                             found.begin());
      return Mismatch{Mismatch::Where::file, offset + done + (want - expected.begin()),
                      std::to_integer<std::uint8_t>(*want), std::to_integer<std::uint8_t>(*got)};
    }
    done += part;
  }
  return std::nullopt;
}

std::optional<Mismatch> check_untouched(std::span<const std::byte> memory, std::uint64_t offset) {
  const auto touched = std::ranges::find_if(memory, [](std::byte b) { return b != poison; });
  if (touched == memory.end()) return std::nullopt;
  return Mismatch{Mismatch::Where::halo, offset + (touched - memory.begin()),
                  std::to_integer<std::uint8_t>(poison), std::to_integer<std::uint8_t>(*touched)};
}

}  // namespace workload
