// Goal: a quotient is that of a division, for all numbers that are not negative.
// Method: random numbers of all magnitudes, and those around multiples, where rounding shows.

#include "core/model/divisor.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cstdint>
#include <limits>

namespace forebay {
namespace {

constexpr std::int64_t largest = std::numeric_limits<std::int64_t>::max();

/// Of any magnitude: most of all 64-bit numbers are of the largest.
std::int64_t draw_number() {
  const auto bits = *rc::gen::inRange(0, 63);
  return *rc::gen::resize(rc::kNominalSize, rc::gen::inRange<std::int64_t>(0, largest)) >> bits;
}

RC_GTEST_PROP(DivisorProperty, divides_as_a_division_does, ()) {
  const std::int64_t value = std::max<std::int64_t>(1, draw_number());
  const std::int64_t dividend = draw_number();
  const Divisor divisor(value);
  RC_ASSERT(divisor.quotient(dividend) == dividend / value);
  const std::int64_t multiple = dividend / value * value;
  RC_ASSERT(divisor.quotient(multiple) == multiple / value);
  if (multiple > 0) RC_ASSERT(divisor.quotient(multiple - 1) == (multiple - 1) / value);
}

TEST(Divisor, has_no_trouble_at_the_limits) {
  for (const std::int64_t value :
       {std::int64_t{1}, std::int64_t{2}, std::int64_t{3}, largest / 2, largest - 1, largest}) {
    for (const std::int64_t dividend :
         {std::int64_t{0}, std::int64_t{1}, value - 1, value, largest - 1, largest}) {
      EXPECT_EQ(Divisor(value).quotient(dividend), dividend / value);
    }
  }
}

}  // namespace
}  // namespace forebay
