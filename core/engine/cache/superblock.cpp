#include "core/engine/cache/superblock.hpp"

#include <nlohmann/json.hpp>

#include "core/engine/cache/sealed_block.hpp"

namespace forebay {
namespace {

constexpr BlockKind segment_block{"FBWBLOG\n", log_version, "write-behind log segment"};

}  // namespace

Result<std::vector<std::byte>> encode_superblock(const Superblock& superblock) {
  const LogIdentity& identity = superblock.identity;
  const nlohmann::json body = {
      {"log", identity.log},
      {"path", byte_string(identity.file.path)},
      {"device", identity.file.device},
      {"inode", identity.file.inode},
      {"stripe_size", identity.layout.stripe_size},
      {"servers", identity.layout.servers},
      {"lock_conflicts", identity.layout.lock_conflicts},
      {"job", byte_string(identity.job)},
      {"host", byte_string(identity.host)},
      {"process", identity.process},
      {"rank", identity.rank},
      {"made_unix_s", identity.made_unix_s},
      {"segment", superblock.segment},
      {"first_sequence", superblock.first_sequence},
      {"segment_bytes", superblock.segment_bytes},
      {"salt", superblock.salt},
  };
  return seal_block(segment_block, body, superblock_bytes);
}

Result<Superblock> parse_superblock(std::span<const std::byte> block) {
  const auto body = open_block(segment_block, block);
  if (!body) return tl::unexpected(body.error());
  Superblock result;
  LogIdentity& identity = result.identity;
  const bool complete =
      get_field(*body, "log", identity.log) && get_field(*body, "path", identity.file.path) &&
      get_field(*body, "device", identity.file.device) &&
      get_field(*body, "inode", identity.file.inode) &&
      get_field(*body, "stripe_size", identity.layout.stripe_size) &&
      get_field(*body, "servers", identity.layout.servers) &&
      get_field(*body, "lock_conflicts", identity.layout.lock_conflicts) &&
      get_field(*body, "job", identity.job) && get_field(*body, "host", identity.host) &&
      get_field(*body, "process", identity.process) && get_field(*body, "rank", identity.rank) &&
      get_field(*body, "made_unix_s", identity.made_unix_s) &&
      get_field(*body, "segment", result.segment) &&
      get_field(*body, "first_sequence", result.first_sequence) &&
      get_field(*body, "segment_bytes", result.segment_bytes) &&
      get_field(*body, "salt", result.salt);
  const bool sensible = result.first_sequence > 0 && result.segment_bytes >= superblock_bytes &&
                        identity.layout.stripe_size >= 0 && identity.layout.servers > 0;
  if (!complete || !sensible) {
    return tl::unexpected(
        Error{ErrorKind::io, 0, "this write-behind log segment lacks a field or has a wrong one"});
  }
  return result;
}

}  // namespace forebay
