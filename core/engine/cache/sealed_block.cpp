#include "core/engine/cache/sealed_block.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/engine/cache/cbor_map.hpp"
#include "core/engine/cache/crc32c.hpp"
#include "core/engine/cache/little_endian.hpp"

namespace forebay {
namespace {

using nlohmann::json;

constexpr std::size_t version_at = 8;
constexpr std::size_t body_bytes_at = 12;
constexpr std::size_t checksum_at = 16;  ///< Four bytes of zeros follow it.

std::uint32_t checksum(std::span<const std::byte> block, std::size_t body_bytes) {
  return crc32c(block.subspan(sealed_block_header_bytes, body_bytes),
                crc32c(block.first(checksum_at)));
}

tl::unexpected<Error> damaged(const BlockKind& kind, const char* why) {
  return tl::unexpected(Error{ErrorKind::io, 0, fmt::format("this is no {}: {}", kind.name, why)});
}

/// `block` has a header's bytes at least.
bool has_magic(const BlockKind& kind, std::span<const std::byte> block) {
  return std::equal(kind.magic.begin(), kind.magic.end(), block.begin(),
                    [](char c, std::byte b) { return static_cast<std::byte>(c) == b; });
}

template <typename Integer>
bool get_integer(const json& map, const char* key, Integer& value) {
  const auto found = map.find(key);
  if (found == map.end() || !found->is_number_integer()) return false;
  if (found->is_number_unsigned()) {
    const auto number = found->template get<std::uint64_t>();
    if (number > static_cast<std::uint64_t>(std::numeric_limits<Integer>::max())) return false;
    value = static_cast<Integer>(number);
    return true;
  }
  if constexpr (std::is_signed_v<Integer>) {
    const auto number = found->template get<std::int64_t>();
    if (number < std::numeric_limits<Integer>::min()) return false;
    value = static_cast<Integer>(number);
    return true;
  }
  return false;
}

}  // namespace

Result<std::vector<std::byte>> seal_block(const BlockKind& kind, const json& body, Bytes size) {
  assert(kind.magic.size() == version_at);
  std::vector<std::byte> block(sealed_block_header_bytes);
  std::transform(kind.magic.begin(), kind.magic.end(), block.begin(),
                 [](char c) { return static_cast<std::byte>(c); });
  const std::vector<std::uint8_t> value = json::to_cbor(body);
  const auto* begin = reinterpret_cast<const std::byte*>(value.data());
  block.insert(block.end(), begin, begin + value.size());
  if (static_cast<Bytes>(block.size()) > size) {
    return tl::unexpected(
        Error{ErrorKind::invalid_argument, 0,
              fmt::format("a {} of {} bytes does not fit in {}", kind.name, block.size(), size)});
  }
  store_little_endian(std::span(block), version_at, kind.version);
  store_little_endian(std::span(block), body_bytes_at, static_cast<std::uint32_t>(value.size()));
  store_little_endian(std::span(block), checksum_at, checksum(block, value.size()));
  block.resize(static_cast<std::size_t>(size));
  return block;
}

Result<json> open_block(const BlockKind& kind, std::span<const std::byte> block) {
  if (block.size() < sealed_block_header_bytes) return damaged(kind, "it is too short");
  if (!has_magic(kind, block)) return damaged(kind, "it starts with other bytes");
  if (const auto version = load_little_endian<std::uint32_t>(block, version_at);
      version != kind.version) {
    return tl::unexpected(Error{
        ErrorKind::unsupported, 0,
        fmt::format("the {} is of format version {}, and this Forebay reads version {}; use "
                    "the {} Forebay that wrote it",
                    kind.name, version, kind.version, version > kind.version ? "newer" : "older")});
  }
  const auto body_bytes = load_little_endian<std::uint32_t>(block, body_bytes_at);
  if (body_bytes > block.size() - sealed_block_header_bytes) {
    return damaged(kind, "its length is wrong");
  }
  if (load_little_endian<std::uint32_t>(block, checksum_at) != checksum(block, body_bytes)) {
    return damaged(kind, "its checksum is wrong");
  }
  auto body = parse_cbor_map(block.subspan(sealed_block_header_bytes, body_bytes));
  if (!body) return damaged(kind, "it holds no map");
  return std::move(*body);
}

bool all_zeros(std::span<const std::byte> bytes) {
  return std::ranges::all_of(bytes, [](std::byte byte) { return byte == std::byte{0}; });
}

bool is_cut_short(const BlockKind& kind, std::span<const std::byte> block) {
  // A number that is written in eight bytes is not zero: no whole map ends in so many zeros.
  constexpr std::size_t most_zeros = 7;
  if (block.size() < sealed_block_header_bytes || !has_magic(kind, block) ||
      load_little_endian<std::uint32_t>(block, version_at) != kind.version) {
    return false;
  }
  const auto body_bytes = load_little_endian<std::uint32_t>(block, body_bytes_at);
  if (body_bytes <= most_zeros || body_bytes > block.size() - sealed_block_header_bytes) {
    return false;
  }
  const std::size_t end = sealed_block_header_bytes + body_bytes;
  return all_zeros(block.subspan(end - most_zeros - 1));
}

bool get_field(const json& map, const char* key, std::uint64_t& value) {
  return get_integer(map, key, value);
}
bool get_field(const json& map, const char* key, std::uint32_t& value) {
  return get_integer(map, key, value);
}
bool get_field(const json& map, const char* key, std::int64_t& value) {
  return get_integer(map, key, value);
}
bool get_field(const json& map, const char* key, int& value) {
  return get_integer(map, key, value);
}

bool get_field(const json& map, const char* key, bool& value) {
  const auto found = map.find(key);
  if (found == map.end() || !found->is_boolean()) return false;
  value = found->get<bool>();
  return true;
}

bool get_field(const json& map, const char* key, std::string& value) {
  const auto found = map.find(key);
  if (found == map.end()) return false;
  if (found->is_string()) {
    value = found->get<std::string>();
    return true;
  }
  if (!found->is_binary()) return false;
  const auto& bytes = found->get_binary();
  value.assign(bytes.begin(), bytes.end());
  return true;
}

json byte_string(std::string_view text) {
  return json::binary(std::vector<std::uint8_t>(text.begin(), text.end()));
}

}  // namespace forebay
