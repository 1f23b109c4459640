#include "core/engine/cache/crc32c.hpp"

#include <isa-l/crc.h>

#include <algorithm>

namespace forebay {

std::uint32_t crc32c(std::span<const std::byte> data, std::uint32_t before) {
  // ISA-L neither inverts nor takes lengths beyond an int, nor promises not to write (it does not).
  constexpr std::size_t most = std::size_t{1} << 30;
  std::uint32_t state = ~before;
  while (!data.empty()) {
    const auto part = data.first(std::min(data.size(), most));
    auto* bytes = reinterpret_cast<unsigned char*>(const_cast<std::byte*>(part.data()));
    state = ::crc32_iscsi(bytes, static_cast<int>(part.size()), state);
    data = data.subspan(part.size());
  }
  return ~state;
}

}  // namespace forebay
