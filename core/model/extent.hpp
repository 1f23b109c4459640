#pragma once

#include <algorithm>
#include <cstdint>

namespace forebay {

/// A number of bytes, or a byte offset. Signed, as off_t and MPI_Offset are.
using Bytes = std::int64_t;

constexpr Bytes KiB = 1024;
constexpr Bytes MiB = 1024 * KiB;
constexpr Bytes GiB = 1024 * MiB;

/// To whole multiples of `unit`, of values that are not negative.
constexpr Bytes round_down(Bytes value, Bytes unit) { return value - value % unit; }
constexpr Bytes round_up(Bytes value, Bytes unit) { return round_down(value + unit - 1, unit); }

/// The half-open byte range [offset, offset + length).
struct Extent {
  Bytes offset = 0;
  Bytes length = 0;

  constexpr Bytes end() const { return offset + length; }
  constexpr bool empty() const { return length <= 0; }
  constexpr bool operator==(const Extent&) const = default;
};

constexpr Extent intersect(Extent a, Extent b) {
  const Bytes low = std::max(a.offset, b.offset);
  const Bytes high = std::min(a.end(), b.end());
  return {low, std::max<Bytes>(0, high - low)};
}

/// The smallest extent that holds both; an empty one adds nothing.
constexpr Extent hull(Extent a, Extent b) {
  if (a.empty()) return b;
  if (b.empty()) return a;
  const Bytes low = std::min(a.offset, b.offset);
  return {low, std::max(a.end(), b.end()) - low};
}

}  // namespace forebay
