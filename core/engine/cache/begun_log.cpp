#include "core/engine/cache/begun_log.hpp"

#include <algorithm>
#include <span>
#include <vector>

#include "core/engine/cache/flush_mark.hpp"
#include "core/engine/cache/log_segment.hpp"
#include "core/engine/cache/sealed_block.hpp"
#include "core/engine/cache/superblock.hpp"

namespace forebay {
namespace {

constexpr Bytes read_bytes = 1 * MiB;

bool zeros_from(StorageFile& segment, Bytes position) {
  std::vector<std::byte> buffer(static_cast<std::size_t>(read_bytes));
  for (;;) {
    const auto got = segment.read_at(buffer, position);
    if (!got) return false;
    if (*got == 0) return true;
    if (!all_zeros(std::span(buffer).first(static_cast<std::size_t>(*got)))) return false;
    position += *got;
  }
}

/// It is the log's first one, and its only one: what is flushed of a log says so, too.
bool has_first_segment_alone(LogStore& log) {
  const auto names = log.list();
  if (!names || std::ranges::count_if(*names, is_segment_name) != 1) return false;
  const auto flushed = FlushMark::read(log);
  return std::ranges::count(*names, segment_name(0)) == 1 && flushed && *flushed == 0;
}

}  // namespace

bool is_only_begun(LogStore& log) {
  if (!has_first_segment_alone(log)) return false;
  const auto segment = log.open(segment_name(0));
  if (!segment) return false;
  std::vector<std::byte> block(static_cast<std::size_t>(superblock_bytes));
  const auto got = (*segment)->read_at(block, 0);
  return got && *got == superblock_bytes && is_cut_short(block) &&
         zeros_from(**segment, superblock_bytes);
}

}  // namespace forebay
