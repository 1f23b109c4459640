// Feeds arbitrary text to the parser of dirty notices, as it is and with a right checksum.

#include <cassert>
#include <cstdint>
#include <string_view>

#include "core/engine/cache/sidecar.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto notice = forebay::parse_notice(text)) {
    const auto again = forebay::parse_notice(forebay::encode_notice(*notice));
    assert(again && *again == *notice);
  }
  // Its fields may be anything, its text still is read again.
  forebay::DirtyNotice notice;
  notice.file.path = text;
  notice.log = text;
  assert(forebay::parse_notice(forebay::encode_notice(notice)));
  return 0;
}
