#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/model/error.hpp"
#include "core/model/extent.hpp"

// docs/formats/write-behind-log.md, "Sealed blocks"

namespace forebay {

/// What a sealed block is: 24 bytes of header and a CBOR map behind it, in a block of a fixed size.
/// Magic and version stand at the same place in all versions, so that any reader can name them.
struct BlockKind {
  std::string_view magic;     ///< 8 characters.
  std::uint32_t version = 0;  ///< What is written, and the only one that is read.
  const char* name = "";      ///< For messages: "segment".
};

constexpr std::size_t sealed_block_header_bytes = 24;

/// `size` bytes, zeros behind the value. Error: invalid_argument if `body` does not fit.
Result<std::vector<std::byte>> seal_block(const BlockKind& kind, const nlohmann::json& body,
                                          Bytes size);

/// The map in `block`. Errors, with a message for a person: unsupported (another version), io
/// (damaged, or something else).
Result<nlohmann::json> open_block(const BlockKind& kind, std::span<const std::byte> block);

/// As what its device never got is read.
bool all_zeros(std::span<const std::byte> bytes);
/// Whether the beginning of one is in `block`, and zeros from before its end on.
bool is_cut_short(const BlockKind& kind, std::span<const std::byte> block);

// Fields of such a map. Absent or of another type: no change, and false.
bool get_field(const nlohmann::json& map, const char* key, std::uint64_t& value);
bool get_field(const nlohmann::json& map, const char* key, std::uint32_t& value);
bool get_field(const nlohmann::json& map, const char* key, std::int64_t& value);
bool get_field(const nlohmann::json& map, const char* key, int& value);
bool get_field(const nlohmann::json& map, const char* key, bool& value);
/// A byte string or text.
bool get_field(const nlohmann::json& map, const char* key, std::string& value);

/// A string that may hold any bytes, as paths do.
nlohmann::json byte_string(std::string_view text);

}  // namespace forebay
