#include "core/storage/told_alignment.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>

namespace forebay {

std::optional<Bytes> told_direct_alignment([[maybe_unused]] int descriptor) {
#ifdef STATX_DIOALIGN
  struct statx status{};
  if (::statx(descriptor, "", AT_EMPTY_PATH, STATX_DIOALIGN, &status) != 0) return std::nullopt;
  if ((status.stx_mask & STATX_DIOALIGN) == 0) return std::nullopt;
  return std::max(status.stx_dio_offset_align, status.stx_dio_mem_align);
#else
  return std::nullopt;
#endif
}

}  // namespace forebay
