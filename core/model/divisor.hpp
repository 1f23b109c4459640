#pragma once

#include <cassert>
#include <cstdint>
#include <limits>

namespace forebay {

/// A number that others are divided by again and again. A division takes some processors of today
/// 40 to 90 cycles; this multiplies.
class Divisor {
 public:
  /// `value` > 0.
  explicit constexpr Divisor(std::int64_t value)
      : value_(static_cast<std::uint64_t>(value)),
        reciprocal_(std::numeric_limits<std::uint64_t>::max() / value_) {
    assert(value > 0);
  }

  constexpr std::int64_t value() const { return static_cast<std::int64_t>(value_); }

  /// dividend / value, of a dividend >= 0. The product falls short of the quotient by less than
  /// dividend / 2^64: rounded down it is the quotient, or one less.
  constexpr std::int64_t quotient(std::int64_t dividend) const {
    __extension__ using Product = unsigned __int128;
    const auto whole = static_cast<std::uint64_t>(dividend);
    auto quotient = static_cast<std::uint64_t>((Product{whole} * reciprocal_) >> 64);
    if (whole - quotient * value_ >= value_) ++quotient;
    return static_cast<std::int64_t>(quotient);
  }

 private:
  std::uint64_t value_;
  std::uint64_t reciprocal_;
};

}  // namespace forebay
