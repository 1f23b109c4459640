#include "core/intercept/posix/trace_record.hpp"

#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "core/intercept/posix/record_file.hpp"

namespace forebay::posix {
namespace {

using Json = nlohmann::ordered_json;
using OfOtherBytes = Json::error_handler_t;

/// In hexadecimal. Null for UTF-8, which JSON holds as it is.
Json bytes_beyond_utf8(const std::string& path) {
  const Json text = path;
  const auto dumped = [&](OfOtherBytes what) { return text.dump(-1, ' ', false, what); };
  if (dumped(OfOtherBytes::replace) == dumped(OfOtherBytes::ignore)) return nullptr;
  constexpr std::string_view digits = "0123456789abcdef";
  std::string result;
  for (const char character : path) {
    const auto byte = static_cast<unsigned char>(character);
    result += digits[byte / 16];
    result += digits[byte % 16];
  }
  return result;
}

}  // namespace

void write_trace_record(const std::string& path, Bytes size, const ReadTrace& trace) {
  auto extents = Json::array();
  for (const Extent& extent : trace.extents()) {
    extents.push_back(Json::array({extent.offset, extent.length}));
  }
  Json record = {{"version", 1},
                 {"path", path},
                 {"size", size},
                 {"reads", trace.reads()},
                 {"bytes", trace.bytes()},
                 {"left_out", trace.left_out()},
                 {"extents", std::move(extents)}};
  if (Json bytes = bytes_beyond_utf8(path); !bytes.is_null()) record["path_bytes"] = bytes;
  // What is no UTF-8 is replaced in `path`, which is for people then.
  leave_record(record.dump(-1, ' ', false, OfOtherBytes::replace) + "\n", ".trace");
}

}  // namespace forebay::posix
