#include "core/storage/page_residence.hpp"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "core/storage/file_version.hpp"

namespace forebay {
namespace {

Bytes page_size() { return ::sysconf(_SC_PAGESIZE); }

/// A part of a file, mapped to be asked about: past our own tracing, as it is no call of the
/// program's.
class LookedAt {
 public:
  /// From the page of `offset` on.
  LookedAt(int descriptor, Bytes offset, std::size_t length)
      : address_(::syscall(SYS_mmap, nullptr, length, PROT_READ, MAP_PRIVATE | MAP_NORESERVE,
                           descriptor, offset)),
        length_(length) {}
  ~LookedAt() {
    if (is_mapped()) ::syscall(SYS_munmap, address_, length_);
  }
  LookedAt(const LookedAt&) = delete;
  LookedAt& operator=(const LookedAt&) = delete;

  /// Pages that are in the page cache.
  std::optional<Bytes> resident_pages() const {
    if (!is_mapped()) return std::nullopt;
    const auto page = static_cast<std::size_t>(page_size());
    std::vector<unsigned char> pages((length_ + page - 1) / page);
    if (::syscall(SYS_mincore, address_, length_, pages.data()) != 0) return std::nullopt;
    return std::ranges::count_if(pages, [](unsigned char one) { return (one & 1U) != 0; });
  }

 private:
  bool is_mapped() const { return address_ != -1; }

  const long address_;
  const std::size_t length_;
};

std::optional<Bytes> count_resident(int descriptor, Extent extent) {
  // The C library has no wrapper yet; the number is the same on every architecture.
  constexpr long cachestat_number = 451;
  struct Counts {
    std::uint64_t cached, dirty, writeback, evicted, recently_evicted;
  };
  const std::array<std::uint64_t, 2> range = {static_cast<std::uint64_t>(extent.offset),
                                              static_cast<std::uint64_t>(extent.length)};
  Counts counts{};
  if (::syscall(cachestat_number, descriptor, range.data(), &counts, 0) != 0) return std::nullopt;
  return static_cast<Bytes>(counts.cached) * page_size();
}

/// Whoever may not be told is told that everything is there: also what lies far behind the end.
bool pages_are_told(int descriptor) {
  constexpr Bytes far_behind = 64 * MiB;
  const auto version = version_of(descriptor);
  if (!version) return false;
  const Bytes page = page_size();
  const LookedAt behind(descriptor, round_up(version->size, page) + far_behind,
                        static_cast<std::size_t>(page));
  return behind.resident_pages() == 0;
}

}  // namespace

ResidenceTold residence_told(int descriptor) {
  if (count_resident(descriptor, {0, 1})) return ResidenceTold::by_count;
  return pages_are_told(descriptor) ? ResidenceTold::by_pages : ResidenceTold::nothing;
}

Bytes resident_bytes(int descriptor, Extent extent, ResidenceTold told) {
  if (told == ResidenceTold::nothing || extent.empty()) return 0;
  if (told == ResidenceTold::by_count) return count_resident(descriptor, extent).value_or(0);
  const Bytes first = round_down(extent.offset, page_size());
  const LookedAt pages(descriptor, first, static_cast<std::size_t>(extent.end() - first));
  return pages.resident_pages().value_or(0) * page_size();
}

}  // namespace forebay
