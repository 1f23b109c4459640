#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>

namespace forebay {

/// The map that `bytes` are in CBOR (RFC 8949). No value: something else, or nothing sound, or
/// nested deeper than any map of ours. Whatever the bytes are, it ends, takes memory in proportion
/// to them, and throws nothing but for lack of memory.
std::optional<nlohmann::json> parse_cbor_map(std::span<const std::byte> bytes);

}  // namespace forebay
