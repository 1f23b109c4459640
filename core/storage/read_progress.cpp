#include "core/storage/read_progress.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

namespace forebay {

PositionProgress::PositionProgress(int descriptor, FileId file, std::function<Bytes(int)> asked)
    : program_(descriptor), file_(file), asked_(std::move(asked)), position_(position()) {}

Bytes PositionProgress::position_of(int descriptor) { return ::lseek(descriptor, 0, SEEK_CUR); }

/// 0: it is not to be had. On a busy machine the program closes the descriptor while its position
/// is asked for, and has opened the same file by the same number, for a later piece.
Bytes PositionProgress::position() const {
  if (const Bytes last = end_.load(); last >= 0) return last;
  const auto version = version_of(program_);
  if (!version || !(version->id == file_)) return 0;
  const Bytes now = asked_(program_);
  const Bytes last = end_.load();
  return std::max<Bytes>(last >= 0 ? last : now, 0);
}

bool PositionProgress::end(int descriptor) {
  if (descriptor != program_ || has_ended()) return false;
  end_.store(position());
  return true;
}

std::optional<ReadProgress::Seen> PositionProgress::look(std::span<const Extent> expected) {
  const Bytes now = position();
  if (now == 0 || now == position_) return std::nullopt;
  const Bytes from = std::max<Bytes>(now - longest_buffer, 0);
  const Extent read{from, now - from};
  const Extent sought{now, longest_buffer};
  Bytes read_to = 0;
  bool is_next = false;
  for (const Extent& piece : expected) {
    if (!intersect(piece, read).empty()) read_to = std::max(read_to, std::min(piece.end(), now));
    is_next |= !intersect(piece, sought).empty();
  }
  if (read_to == 0 && is_next) return std::nullopt;
  position_ = now;
  if (read_to > 0) return Seen{{read_to - 1, 1}};
  return Seen{read, sought};
}

MappedProgress::MappedProgress(const Mapping& mapping)
    : mapping_(mapping),
      page_(::sysconf(_SC_PAGESIZE)),
      pagemap_(::open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC)) {}

/// The last one of what is expected whose last byte was touched: the kernel enters pages around the
/// one that is touched, hence the first byte would say it too early.
std::optional<ReadProgress::Seen> MappedProgress::look(std::span<const Extent> expected) {
  for (auto piece = expected.rbegin(); piece != expected.rend(); ++piece) {
    if (is_touched(piece->end() - 1)) return Seen{{piece->end() - 1, 1}};
  }
  return std::nullopt;
}

bool MappedProgress::is_touched(Bytes offset) const {
  const Bytes inside = offset - mapping_.offset;
  if (inside < 0 || inside >= mapping_.length) return false;
  const std::uintptr_t page =
      (mapping_.address + static_cast<std::uintptr_t>(inside)) / static_cast<std::uintptr_t>(page_);
  constexpr std::uint64_t present = std::uint64_t{1} << 63U;
  std::uint64_t entry = 0;
  return ::pread(pagemap_.get(), &entry, sizeof entry, static_cast<off_t>(page * sizeof entry)) ==
             sizeof entry &&
         (entry & present) != 0;
}

/// Whole pages inside. The kernel writes what the program changed elsewhere, if it has where, and
/// reads again what is touched again: nothing is lost, whatever lies there by now.
void MappedProgress::let_go(Extent extent) {
  const Extent shown = intersect(extent, {mapping_.offset, mapping_.length});
  if (shown.empty()) return;
  const auto page = static_cast<std::uintptr_t>(page_);
  const std::uintptr_t from =
      mapping_.address + static_cast<std::uintptr_t>(shown.offset - mapping_.offset);
  const std::uintptr_t begin = (from + page - 1) / page * page;
  const std::uintptr_t end = (from + static_cast<std::uintptr_t>(shown.length)) / page * page;
  // NOLINTNEXTLINE(performance-no-int-to-ptr): an address of the program's.
  if (begin < end) ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_PAGEOUT);
}

}  // namespace forebay
