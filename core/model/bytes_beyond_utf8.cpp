#include "core/model/bytes_beyond_utf8.hpp"

#include <nlohmann/json.hpp>
#include <string_view>

namespace forebay {

std::string bytes_beyond_utf8(const std::string& path) {
  using OfOtherBytes = nlohmann::json::error_handler_t;
  const nlohmann::json text = path;
  const auto dumped = [&](OfOtherBytes what) { return text.dump(-1, ' ', false, what); };
  if (dumped(OfOtherBytes::replace) == dumped(OfOtherBytes::ignore)) return {};
  constexpr std::string_view digits = "0123456789abcdef";
  std::string result;
  for (const char character : path) {
    const auto byte = static_cast<unsigned char>(character);
    result += digits[byte / 16];
    result += digits[byte % 16];
  }
  return result;
}

}  // namespace forebay
