#pragma once

#include <cstdint>

namespace random_access {

/// SplitMix64: one step, also used to make data that depends on where it is.
constexpr std::uint64_t mix(std::uint64_t value) {
  value += 0x9e3779b97f4a7c15;
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9;
  value = (value ^ (value >> 27)) * 0x94d049bb133111eb;
  return value ^ (value >> 31);
}

/// Draws the same numbers on every rank: all ranks know what all of them are going to do.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(mix(seed)) {}

  std::uint64_t bits() { return mix(state_ += 0x9e3779b97f4a7c15); }
  /// 0 .. n - 1; n is positive.
  std::int64_t below(std::int64_t n) {
    return static_cast<std::int64_t>(bits() % static_cast<std::uint64_t>(n));
  }
  /// Both ends included.
  std::int64_t between(std::int64_t first, std::int64_t last) {
    return first + below(last - first + 1);
  }
  bool percent(int chance) { return below(100) < chance; }

 private:
  std::uint64_t state_;
};

}  // namespace random_access
