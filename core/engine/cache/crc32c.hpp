#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace forebay {

/// CRC-32C (Castagnoli; RFC 3720, appendix B.4) by ISA-L. crc32c("123456789") is 0xe3069283.
/// `before` is the checksum of what precedes `data`: crc32c(b, crc32c(a)) is that of a and b
/// together. Any other value serves as a salt: the checksums of equal data under different salts
/// differ.
std::uint32_t crc32c(std::span<const std::byte> data, std::uint32_t before = 0);

}  // namespace forebay
