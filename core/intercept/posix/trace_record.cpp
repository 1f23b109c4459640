#include "core/intercept/posix/trace_record.hpp"

#include <string_view>

#include "core/intercept/posix/record_file.hpp"
#include "core/intercept/posix/record_text.hpp"

namespace forebay::posix {
namespace {

/// In hexadecimal. Empty for UTF-8, which JSON holds as it is.
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

}  // namespace

void write_trace_record(const std::string& path, Bytes size, const ReadTrace& trace) {
  std::string extents = "[";
  for (const Extent& extent : trace.extents()) {
    if (extents.size() > 1) extents += ',';
    extents += "[" + std::to_string(extent.offset) + "," + std::to_string(extent.length) + "]";
  }
  RecordText record;
  record.add("version", 1);
  record.add("path", path);  // For people, where it is no UTF-8.
  record.add("size", size);
  record.add("reads", trace.reads());
  record.add("bytes", trace.bytes());
  record.add("left_out", trace.left_out());
  record.add_written("extents", extents + "]");
  if (const std::string bytes = bytes_beyond_utf8(path); !bytes.empty()) {
    record.add("path_bytes", bytes);
  }
  leave_record(record.take(), ".trace");
}

}  // namespace forebay::posix
