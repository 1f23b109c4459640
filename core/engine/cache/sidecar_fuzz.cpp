// Feeds arbitrary text to the parsers of dirty notices and of recoveries, as it is and with a right
// checksum.

#include <algorithm>
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
  (void)forebay::parse_recovery_of_version_1(text);
  if (const auto note = forebay::parse_recovery(text)) {
    assert(forebay::parse_recovery(forebay::encode_recovery(*note)));
  }
  // Their fields may be anything, their text still is read again, and paths are as they were.
  forebay::DirtyNotice notice;
  notice.file.path = text;
  notice.log = text;
  const auto read_notice = forebay::parse_notice(forebay::encode_notice(notice));
  assert(read_notice && read_notice->file.path == text);
  forebay::RecoveryNote note;
  note.host = text;
  note.logs = {{std::string(text), "/local"}, {"one", std::string(text)}};
  const auto read_note = forebay::parse_recovery(forebay::encode_recovery(note));
  assert(read_note && std::ranges::any_of(read_note->logs,
                                          [&](const auto& log) { return log.directory == text; }));
  return 0;
}
