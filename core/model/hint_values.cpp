#include "core/model/hint_values.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <system_error>

namespace forebay {
namespace {

constexpr char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

bool same_word(std::string_view text, std::string_view word) {
  return std::ranges::equal(text, word, {}, lower);
}

struct Unit {
  std::string_view suffix;  ///< In lower case.
  Bytes bytes;
};
constexpr std::array units = {Unit{"", 1},      Unit{"k", KiB}, Unit{"kib", KiB}, Unit{"m", MiB},
                              Unit{"mib", MiB}, Unit{"g", GiB}, Unit{"gib", GiB}};

}  // namespace

std::optional<int> parse_count(std::string_view text) {
  const auto value = parse_index(text);
  return value == 0 ? std::nullopt : value;
}

std::optional<int> parse_index(std::string_view text) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.begin(), text.end(), value);
  if (error != std::errc() || end != text.end() || value < 0 || text.starts_with('-')) {
    return std::nullopt;
  }
  return value;
}

std::optional<Bytes> parse_size(std::string_view text) {
  Bytes value = 0;
  const auto [end, error] = std::from_chars(text.begin(), text.end(), value);
  if (error != std::errc() || value < 1) return std::nullopt;
  const std::string_view suffix(end, text.end());
  for (const Unit& unit : units) {
    if (!same_word(suffix, unit.suffix)) continue;
    if (value > std::numeric_limits<Bytes>::max() / unit.bytes) return std::nullopt;
    return value * unit.bytes;
  }
  return std::nullopt;
}

std::optional<Toggle> parse_toggle(std::string_view text) {
  if (same_word(text, "automatic")) return Toggle::automatic;
  const auto value = parse_boolean(text);
  if (!value) return std::nullopt;
  return *value ? Toggle::enable : Toggle::disable;
}

std::optional<bool> parse_boolean(std::string_view text) {
  if (same_word(text, "true") || same_word(text, "enable")) return true;
  if (same_word(text, "false") || same_word(text, "disable")) return false;
  return std::nullopt;
}

std::string_view to_string(Toggle toggle) {
  switch (toggle) {
    case Toggle::enable:
      return "enable";
    case Toggle::disable:
      return "disable";
    case Toggle::automatic:
      break;
  }
  return "automatic";
}

std::string_view trim(std::string_view text) {
  constexpr std::string_view blanks = " \t";
  const std::size_t first = text.find_first_not_of(blanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(blanks) - first + 1);
}

}  // namespace forebay
