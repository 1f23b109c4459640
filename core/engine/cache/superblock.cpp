#include "core/engine/cache/superblock.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>

#include "core/engine/cache/sealed_block.hpp"

namespace forebay {
namespace {

constexpr BlockKind segment_block{"FBWBLOG\n", log_version, "write-behind log segment"};
/// Another magic, so that nobody takes parity for bytes of the file.
constexpr BlockKind parity_segment_block{"FBWBPAR\n", parity_log_version, "parity log segment"};

constexpr const BlockKind& kind_of(LogPurpose purpose) {
  return purpose == LogPurpose::data ? segment_block : parity_segment_block;
}

bool starts_with(std::span<const std::byte> block, std::string_view magic) {
  return block.size() >= magic.size() &&
         std::equal(magic.begin(), magic.end(), block.begin(),
                    [](char c, std::byte b) { return static_cast<std::byte>(c) == b; });
}

}  // namespace

Result<std::vector<std::byte>> encode_superblock(const Superblock& superblock) {
  nlohmann::json body = identity_map(superblock.identity);
  body.update({
      {"segment", superblock.segment},
      {"first_sequence", superblock.first_sequence},
      {"segment_bytes", superblock.segment_bytes},
      {"salt", superblock.salt},
  });
  return seal_block(kind_of(superblock.identity.purpose), body, superblock_bytes);
}

Result<Superblock> parse_superblock(std::span<const std::byte> block) {
  const LogPurpose purpose =
      starts_with(block, parity_segment_block.magic) ? LogPurpose::protection : LogPurpose::data;
  const auto body = open_block(kind_of(purpose), block);
  if (!body) return tl::unexpected(body.error());
  Superblock result;
  result.identity.purpose = purpose;
  const bool complete = get_identity(*body, result.identity) &&
                        get_field(*body, "segment", result.segment) &&
                        get_field(*body, "first_sequence", result.first_sequence) &&
                        get_field(*body, "segment_bytes", result.segment_bytes) &&
                        get_field(*body, "salt", result.salt);
  const bool sensible = result.first_sequence > 0 && result.segment_bytes >= superblock_bytes;
  if (!complete || !sensible) {
    return tl::unexpected(
        Error{ErrorKind::io, 0, "this write-behind log segment lacks a field or has a wrong one"});
  }
  return result;
}

bool is_cut_short(std::span<const std::byte> block) { return is_cut_short(segment_block, block); }

}  // namespace forebay
