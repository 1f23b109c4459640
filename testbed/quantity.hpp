#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "core/model/error.hpp"
#include "core/model/extent.hpp"

namespace forebay::testbed {

/// Quantities as a person writes them on the command line. All of them are a non-negative decimal
/// number ("4", "0.5"), optional blanks, and a unit; anything else is an `invalid_argument` that
/// names the accepted form.

/// "64KiB", "1MiB", "2GiB" (powers of 1024), "64kB", "1MB", "2GB" (powers of 1000), "512B", "512".
/// MiB is not MB, so the bare letters k, M and G are refused.
Result<Bytes> parse_bytes(std::string_view text);

/// Bytes, followed by "/s": "4MiB/s". At least one byte a second.
Result<Bytes> parse_bytes_per_second(std::string_view text);

/// Offset and length, each as for parse_bytes: "1MiB+64KiB". Not empty.
Result<Extent> parse_extent(std::string_view text);

/// "3ms", "250us", "40ns", "1.5s"; a bare number is in milliseconds.
Result<std::chrono::nanoseconds> parse_duration(std::string_view text);

}  // namespace forebay::testbed
