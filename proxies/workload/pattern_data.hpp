// What the proxies write: bytes that depend only on a seed, the version of the file and the
// position in it. They do not compress, and no two positions look alike, so a byte that lands in
// the wrong place, is stale or is missing shows when the file is read back. No MPI here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace workload {

/// What memory holds before a read. A byte that the read should have delivered and did not, or
/// should not have touched and did, differs from it.
constexpr std::byte poison{0xA5};

/// The first byte that is not what it should be.
struct Mismatch {
  enum class Where { file, halo };
  Where where = Where::file;
  std::uint64_t offset = 0;  ///< Byte offset in the file, or in memory for a halo.
  std::uint8_t expected = 0;
  std::uint8_t found = 0;
};

/// The contents of one file: an endless sequence of bytes.
class PatternData {
 public:
  /// `version` tells rewrites of a file apart.
  PatternData(std::uint64_t seed, std::uint64_t version);

  /// Eight bytes of the sequence, those at `8 * index`, in the machine's byte order.
  std::uint64_t word(std::uint64_t index) const {
    return mix(key_ + (index + 1) * 0x9E3779B97F4A7C15ULL);
  }

  /// Puts the bytes at `offset` of the sequence and those that follow into `memory`.
  void fill(std::span<std::byte> memory, std::uint64_t offset) const;

  /// Compares `memory` with the bytes at `offset`; nothing if all are equal.
  std::optional<Mismatch> check(std::span<const std::byte> memory, std::uint64_t offset) const;

  /// The output function of splitmix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number
  /// generators", OOPSLA 2014): a bijection, so distinct positions have distinct words.
  static std::uint64_t mix(std::uint64_t z) {
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
    return z ^ (z >> 31);
  }

 private:
  std::uint64_t key_;
};

/// The first byte in which `found`, which was read from `offset` on, differs from `expected`. Both
/// have the same size.
std::optional<Mismatch> first_difference(std::span<const std::byte> expected,
                                         std::span<const std::byte> found, std::uint64_t offset);

/// The first byte of `memory`, which starts at `offset` of a rank's buffer, that is not poison.
std::optional<Mismatch> check_untouched(std::span<const std::byte> memory, std::uint64_t offset);

}  // namespace workload
