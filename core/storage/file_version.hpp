#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <optional>

#include "core/model/extent.hpp"
#include "core/storage/file.hpp"

namespace forebay {

/// What tells one content of a file from the next: every write, truncation and change of times sets
/// the time of change (ctime) to now, and no program can set it to anything else: what does not is
/// told apart by times_tell(). Two versions that are equal hold the same bytes if the earlier one
/// was settled when it was looked at.
struct FileVersion {
  FileId id;
  Bytes size = 0;
  std::int64_t modified_ns = 0;  ///< Since 1970, as are the others.
  std::int64_t changed_ns = 0;
  bool operator==(const FileVersion&) const = default;
};

/// How old the last change must be for the next one to bear another time. File systems keep times
/// to 2 s (FAT) or better, and a write bears the time of its beginning. What is longer under way
/// than this, in another process, is not noticed.
constexpr std::int64_t settling_time_ns = 2'100'000'000;

constexpr bool is_settled(const FileVersion& version, std::int64_t now_ns) {
  const std::int64_t last = std::max(version.modified_ns, version.changed_ns);
  return last + settling_time_ns <= now_ns;
}

FileVersion version_in(const struct stat& status);

/// Of the file behind `descriptor`; none if it cannot be told.
std::optional<FileVersion> version_of(int descriptor);
/// The same as the file's server has it: version_of() may be older where a client keeps it (FUSE
/// for a second, as it comes).
std::optional<FileVersion> served_version_of(int descriptor);

/// What the times of a file tell of changes of its content.
enum class TimesTell {
  nothing,          ///< Not of all changes.
  once_written,     ///< Of a store through a mapping when its page has been written out.
  when_it_is_done,  ///< Of every change.
};
/// Of the file behind `descriptor`. Nothing of files that the kernel makes up as they are read
/// (/proc, /sys), of those in memory (tmpfs), where what is stored through a mapping sets none, or
/// mapped as they lie there (DAX, told since Linux 5.8), nor on FAT, where programs set the time of
/// change, nor in layers (overlayfs) over what may be memory. Once written on FUSE, whose server
/// sets the times, and on whatever is not known to set them with the first store.
TimesTell times_tell(int descriptor);

/// Writes out what is stored in pages of `extent` and waits until it is (sync_file_range(2)), so
/// that the times tell of it. Costs little where nothing is. False: it could not. FUSE before
/// Linux 6.16 does not wait for what is on its way to the server already.
[[nodiscard]] bool write_out(int descriptor, Extent extent);

/// Now, by the clock that times of files are taken from; nanoseconds since 1970.
std::int64_t file_clock_ns();

}  // namespace forebay
