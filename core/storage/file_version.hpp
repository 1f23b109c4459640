#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <optional>

#include "core/model/extent.hpp"
#include "core/storage/file.hpp"

namespace forebay {

/// What tells one content of a file from the next: every write, truncation and change of times sets
/// the time of change (ctime) to now, and no program can set it to anything else. Two versions that
/// are equal hold the same bytes if the earlier one was settled when it was looked at.
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

/// Whether the times of the file behind `descriptor` tell of every change, so that versions tell
/// contents apart. Not of files that the kernel makes up as they are read (/proc, /sys), nor of
/// those in memory (tmpfs), where what is stored through a mapping sets none.
bool tells_changes(int descriptor);

/// Now, by the clock that times of files are taken from; nanoseconds since 1970.
std::int64_t file_clock_ns();

/// Bytes of `extent` in the page cache, in whole pages (cachestat(2), Linux 6.5); 0 if the kernel
/// does not say.
Bytes resident_bytes(int descriptor, Extent extent);

}  // namespace forebay
