#pragma once

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "core/engine/cache/log_record.hpp"
#include "core/engine/cache/log_segment.hpp"
#include "core/engine/cache/superblock.hpp"

namespace forebay {

/// For tests: puts a record without payload in the place of the one that has its sequence number,
/// and no payload either, in the files of a log. So there are records that only earlier versions
/// wrote.
inline void replace_mark(std::map<std::string, std::vector<std::byte>>& files,
                         const LogRecord& mark) {
  bool replaced = false;
  for (auto& [name, content] : files) {
    if (!is_segment_name(name)) continue;
    const auto all = std::span(content);
    const auto superblock = parse_superblock(all.first(static_cast<std::size_t>(superblock_bytes)));
    assert(superblock);
    const RecordHeader header = encode_record(mark, superblock->salt);
    for (auto at = static_cast<std::size_t>(superblock_bytes); at + header.size() <= all.size();
         at += static_cast<std::size_t>(record_alignment)) {
      const auto found = decode_record(all.subspan(at), superblock->salt);
      if (!found || found->sequence != mark.sequence) continue;
      assert(found->kind != RecordKind::data);
      std::ranges::copy(header, all.subspan(at).begin());
      replaced = true;
    }
  }
  assert(replaced);
}

}  // namespace forebay
