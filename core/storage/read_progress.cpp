#include "core/storage/read_progress.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

#include "core/storage/blocked_signals.hpp"

namespace forebay {
namespace {

// Of an entry of the page tables (proc(5), pagemap):
constexpr std::uint64_t is_present = std::uint64_t{1} << 63U;
constexpr std::uint64_t is_swapped = std::uint64_t{1} << 62U;
constexpr std::uint64_t is_of_file = std::uint64_t{1} << 61U;  ///< Or of memory that is shared.

/// Entries are read for so many at a time.
constexpr std::size_t most_pages = 512;

/// Not by the C library's name: MPI libraries put work of their own behind it.
void forget_pages(std::uintptr_t begin, std::uintptr_t end) {
  ::syscall(SYS_madvise, begin, end - begin, MADV_DONTNEED);
}

}  // namespace

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

/// Addresses of whole pages.
struct MappedProgress::Pages {
  std::uintptr_t begin = 0;
  std::uintptr_t end = 0;
};

MappedProgress::MappedProgress(const Mapping& mapping, ShownMemory::Place place)
    : mapping_(mapping),
      place_(std::move(place)),
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
  std::uint64_t entry = 0;
  return entries_from(mapping_.address + static_cast<std::uintptr_t>(inside), {&entry, 1}) &&
         (entry & is_present) != 0;
}

/// Of the page tables, of the page at `address` and those behind it.
bool MappedProgress::entries_from(std::uintptr_t address, std::span<std::uint64_t> entries) const {
  const auto page = address / static_cast<std::uintptr_t>(page_);
  const auto place = static_cast<off_t>(page * sizeof(std::uint64_t));
  return ::pread(pagemap_.get(), entries.data(), entries.size_bytes(), place) ==
         static_cast<ssize_t>(entries.size_bytes());
}

/// Those that lie inside.
MappedProgress::Pages MappedProgress::pages_of(Extent extent) const {
  const Extent shown = intersect(extent, {mapping_.offset, mapping_.length});
  if (shown.empty()) return {};
  const auto page = static_cast<std::uintptr_t>(page_);
  const std::uintptr_t from =
      mapping_.address + static_cast<std::uintptr_t>(shown.offset - mapping_.offset);
  return {(from + page - 1) / page * page,
          (from + static_cast<std::uintptr_t>(shown.length)) / page * page};
}

/// False: one of them is the process's own, and shows no file.
bool MappedProgress::let_go_of(const Pages& pages) const {
  std::array<std::uint64_t, most_pages> entries{};
  const auto page = static_cast<std::uintptr_t>(page_);
  const auto found = std::span(entries).first((pages.end - pages.begin) / page);
  if (!entries_from(pages.begin, found)) return false;
  const auto is_in_use = [](std::uint64_t entry) { return (entry & is_present) != 0; };
  const auto is_own = [](std::uint64_t entry) {
    return (entry & (is_present | is_swapped)) != 0 && (entry & is_of_file) == 0;
  };
  if (std::ranges::any_of(found, is_own)) return false;
  // What is not in use is not touched: whatever comes there is none of this.
  for (auto first = found.begin(); first != found.end();) {
    first = std::find_if(first, found.end(), is_in_use);
    const auto end = std::find_if_not(first, found.end(), is_in_use);
    const auto address = [&](auto entry) {
      return pages.begin + static_cast<std::uintptr_t>(entry - found.begin()) * page;
    };
    if (first != end) forget_pages(address(first), address(end));
    first = end;
  }
  return true;
}

/// The page cache keeps the pages, with what was stored there. MADV_PAGEOUT would take them from
/// others that have yet to come to them. MADV_DONTNEED destroys what is no file's: it is for who
/// holds the place, and for what the page tables say is one, since the program may have put other
/// memory there past us, by calls of its own to the kernel.
void MappedProgress::let_go(Extent extent) {
  const Pages pages = pages_of(extent);
  const auto longest = most_pages * static_cast<std::uintptr_t>(page_);
  for (std::uintptr_t at = pages.begin; is_shown_ && at < pages.end; at += longest) {
    // A handler could want to take away what its own thread holds.
    const BlockedSignals blocked;
    if (!place_.hold()) return;
    is_shown_ = let_go_of({at, std::min(at + longest, pages.end)});
    place_.release();
  }
}

}  // namespace forebay
