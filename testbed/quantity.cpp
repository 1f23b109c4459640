#include "testbed/quantity.hpp"

#include <charconv>
#include <cmath>
#include <limits>
#include <optional>
#include <span>

namespace forebay::testbed {
namespace {

struct Unit {
  std::string_view name;
  double factor;
};

constexpr Unit byte_units[] = {
    {"", 1},
    {"B", 1},
    {"KiB", static_cast<double>(KiB)},
    {"MiB", static_cast<double>(MiB)},
    {"GiB", static_cast<double>(GiB)},
    {"kB", 1e3},
    {"MB", 1e6},
    {"GB", 1e9},
};

constexpr Unit time_units[] = {
    {"", 1e6}, {"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9},
};

/// The number times its unit's factor, rounded to the nearest integer.
std::optional<std::int64_t> parse(std::string_view text, std::span<const Unit> units) {
  double number = 0;
  const auto [rest, error] =
      std::from_chars(text.data(), text.data() + text.size(), number, std::chars_format::fixed);
  if (error != std::errc{} || !std::isfinite(number) || std::signbit(number)) return std::nullopt;
  std::string_view name(rest, static_cast<std::size_t>(text.data() + text.size() - rest));
  while (!name.empty() && name.front() == ' ') name.remove_prefix(1);
  for (const Unit& unit : units) {
    if (unit.name != name) continue;
    const double value = std::round(number * unit.factor);
    // 2^63 is exactly representable; every double below it fits.
    if (value >= -static_cast<double>(std::numeric_limits<std::int64_t>::min())) {
      return std::nullopt;
    }
    return static_cast<std::int64_t>(value);
  }
  return std::nullopt;
}

tl::unexpected<Error> wrong(std::string_view text, std::string_view accepted) {
  return tl::unexpected(Error{ErrorKind::invalid_argument, 0,
                              "'" + std::string(text) + "' is not " + std::string(accepted)});
}

}  // namespace

Result<Bytes> parse_bytes(std::string_view text) {
  if (const auto value = parse(text, byte_units)) return *value;
  return wrong(text, "a size like 64KiB, 1MiB or 512B");
}

Result<Bytes> parse_bytes_per_second(std::string_view text) {
  constexpr std::string_view per_second = "/s";
  if (text.ends_with(per_second)) {
    const auto value = parse(text.substr(0, text.size() - per_second.size()), byte_units);
    if (value && *value >= 1) return *value;
  }
  return wrong(text, "a rate like 4MiB/s or 100MB/s");
}

Result<Extent> parse_extent(std::string_view text) {
  const std::size_t plus = text.find('+');
  if (plus != std::string_view::npos) {
    const auto offset = parse(text.substr(0, plus), byte_units);
    const auto length = parse(text.substr(plus + 1), byte_units);
    if (offset && length && *length >= 1 &&
        *offset <= std::numeric_limits<Bytes>::max() - *length) {
      return Extent{*offset, *length};
    }
  }
  return wrong(text, "an offset and a length like 1MiB+64KiB");
}

Result<std::chrono::nanoseconds> parse_duration(std::string_view text) {
  if (const auto value = parse(text, time_units)) return std::chrono::nanoseconds(*value);
  return wrong(text, "a duration like 3ms, 250us or 1.5s");
}

}  // namespace forebay::testbed
