#include "core/storage/aligned_memory.hpp"

#include <sys/mman.h>

#include "core/model/direct_io.hpp"

namespace forebay {

std::span<std::byte> AlignedMemory::take(Bytes length) {
  if (memory_ == nullptr || length > length_) {
    const bool is_large = length > large_page - direct_alignment;
    const Bytes alignment = is_large ? large_page : direct_alignment;
    const auto size = static_cast<std::size_t>(round_up(length, alignment));
    memory_.reset();  // Before there is more.
    memory_.reset(
        static_cast<std::byte*>(std::aligned_alloc(static_cast<std::size_t>(alignment), size)));
    if (memory_ == nullptr) return {};
    if (is_large) ::madvise(memory_.get(), size, MADV_HUGEPAGE);
    length_ = static_cast<Bytes>(size);
  }
  return {memory_.get(), static_cast<std::size_t>(length)};
}

}  // namespace forebay
