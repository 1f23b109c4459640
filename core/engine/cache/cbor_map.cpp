#include "core/engine/cache/cbor_map.hpp"

#include <cstdint>
#include <limits>
#include <string>
#include <utility>

namespace forebay {
namespace {

using nlohmann::json;

constexpr int most_nested = 8;

/// Whether the library may build what it reads. Building recurses as deep as things are nested, and
/// throws where a length is more than it can hold, also if it was told not to throw.
class Harmless final : public nlohmann::json_sax<json> {
 public:
  explicit Harmless(std::size_t most_elements) : most_elements_(most_elements) {}

  bool null() override { return true; }
  bool boolean(bool /*value*/) override { return true; }
  bool number_integer(std::int64_t /*value*/) override { return true; }
  bool number_unsigned(std::uint64_t /*value*/) override { return true; }
  bool number_float(double /*value*/, const std::string& /*text*/) override { return true; }
  bool string(std::string& /*value*/) override { return true; }
  bool binary(json::binary_t& /*value*/) override { return true; }
  bool key(std::string& /*value*/) override { return true; }
  bool start_object(std::size_t elements) override { return enter(elements); }
  bool end_object() override { return leave(); }
  bool start_array(std::size_t elements) override { return enter(elements); }
  bool end_array() override { return leave(); }
  bool parse_error(std::size_t /*position*/, const std::string& /*token*/,
                   const nlohmann::detail::exception& /*error*/) override {
    return false;
  }

 private:
  bool enter(std::size_t elements) {
    constexpr std::size_t not_told = std::numeric_limits<std::size_t>::max();
    return ++depth_ <= most_nested && (elements == not_told || elements <= most_elements_);
  }
  bool leave() {
    --depth_;
    return true;
  }

  const std::size_t most_elements_;  ///< Each takes a byte at least.
  int depth_ = 0;
};

}  // namespace

std::optional<json> parse_cbor_map(std::span<const std::byte> bytes) {
  const auto* begin = reinterpret_cast<const std::uint8_t*>(bytes.data());
  const auto* end = begin + bytes.size();
  Harmless harmless(bytes.size());
  if (!json::sax_parse(begin, end, &harmless, json::input_format_t::cbor)) return {};
  json map = json::from_cbor(begin, end, true, false);
  if (!map.is_object()) return {};
  return map;
}

}  // namespace forebay
