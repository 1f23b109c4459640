#pragma once

#include <optional>
#include <string_view>

#include "core/model/extent.hpp"
#include "core/model/hints.hpp"

namespace forebay {

// The values that hints take. Each reads the whole of `text` or gives no value: no blanks, no
// signs, nothing behind, nothing out of range. Words may be in any case, as ROMIO takes them.

/// 1 to the largest int.
std::optional<int> parse_count(std::string_view text);

/// 0 to the largest int.
std::optional<int> parse_index(std::string_view text);

/// Bytes, 1 to the largest Bytes: plain, or with one of the suffixes k, KiB, m, MiB, g, GiB (powers
/// of 1024, in any case). Decimal units (KB, MB) are refused: no two programs agree on them.
std::optional<Bytes> parse_size(std::string_view text);

/// enable, disable, automatic; true and false for the first two, since an intent file has booleans.
std::optional<Toggle> parse_toggle(std::string_view text);

/// true, false; enable and disable for them.
std::optional<bool> parse_boolean(std::string_view text);

std::string_view to_string(Toggle toggle);

/// `text` without blanks and tabs at both ends.
std::string_view trim(std::string_view text);

}  // namespace forebay
