#include "core/storage/file_version.hpp"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <ctime>

#include "core/storage/told_alignment.hpp"

namespace forebay {
namespace {

constexpr std::int64_t second_ns = 1'000'000'000;

/// In memory, or of the kernel's own; FAT, whose times are too coarse; SMB, whose client keeps the
/// times that it has while it holds a lease, and tells others on the node no new ones.
constexpr std::array<std::uint32_t, 20> without_times = {
    TMPFS_MAGIC,        RAMFS_MAGIC,          HUGETLBFS_MAGIC, PROC_SUPER_MAGIC,
    SYSFS_MAGIC,        DEBUGFS_MAGIC,        TRACEFS_MAGIC,   SECURITYFS_MAGIC,
    CGROUP_SUPER_MAGIC, CGROUP2_SUPER_MAGIC,  BPF_FS_MAGIC,    EFIVARFS_MAGIC,
    PSTOREFS_MAGIC,     RDTGROUP_SUPER_MAGIC, SELINUX_MAGIC,   MSDOS_SUPER_MAGIC,
    EXFAT_SUPER_MAGIC,  CIFS_SUPER_MAGIC,     SMB_SUPER_MAGIC, SMB2_SUPER_MAGIC};

/// Where the first store to a page sets the times of its file.
constexpr std::array<std::uint32_t, 4> with_times_at_once = {EXT4_SUPER_MAGIC, XFS_SUPER_MAGIC,
                                                             BTRFS_SUPER_MAGIC, F2FS_SUPER_MAGIC};

/// Its mappings are the storage itself (DAX): once a page may be stored to, nothing is told of any
/// store.
bool is_mapped_as_it_lies(int descriptor) {
  struct statx status{};
  return ::statx(descriptor, "", AT_EMPTY_PATH, 0, &status) == 0 &&
         (status.stx_attributes & STATX_ATTR_DAX) != 0;
}

/// Of a timespec, or what statx() has for it.
template <typename Time>
std::int64_t nanoseconds(const Time& time) {
  return time.tv_sec * second_ns + static_cast<std::int64_t>(time.tv_nsec);
}

std::optional<FileVersion> ask_for_version(int descriptor, int how) {
  constexpr unsigned asked = STATX_INO | STATX_SIZE | STATX_MTIME | STATX_CTIME;
  struct statx status{};
  if (::statx(descriptor, "", AT_EMPTY_PATH | how, asked, &status) != 0) return std::nullopt;
  return FileVersion{{::makedev(status.stx_dev_major, status.stx_dev_minor), status.stx_ino},
                     static_cast<Bytes>(status.stx_size),
                     nanoseconds(status.stx_mtime),
                     nanoseconds(status.stx_ctime)};
}

}  // namespace

FileVersion version_in(const struct stat& status) {
  return {{status.st_dev, status.st_ino},
          status.st_size,
          nanoseconds(status.st_mtim),
          nanoseconds(status.st_ctim)};
}

std::optional<FileVersion> version_of(int descriptor) {
  // A client that knows all but the time of the last read, as FUSE does after each of ours, need
  // not ask its server for that.
  if (const auto version = ask_for_version(descriptor, AT_STATX_SYNC_AS_STAT)) return version;
  struct stat status{};
  if (::fstat(descriptor, &status) != 0) return std::nullopt;
  return version_in(status);
}

std::optional<FileVersion> served_version_of(int descriptor) {
  return ask_for_version(descriptor, AT_STATX_FORCE_SYNC);
}

TimesTell times_tell(int descriptor) {
  struct statfs status{};
  if (::fstatfs(descriptor, &status) != 0) return TimesTell::nothing;
  // f_type is a signed word of the machine's width; the magic numbers have 32 bits.
  const auto kind = static_cast<std::uint32_t>(status.f_type);
  const auto is_in = [kind](const auto& kinds) {
    return std::ranges::find(kinds, kind) != kinds.end();
  };
  if (is_in(without_times) || is_mapped_as_it_lies(descriptor)) return TimesTell::nothing;
  // Its server has no times.
  if (const auto now = version_of(descriptor); !now || now->changed_ns == 0) {
    return TimesTell::nothing;
  }
  if (kind == OVERLAYFS_SUPER_MAGIC) {
    // What lies below may be memory, of which this is not told.
    const bool is_on_device = told_direct_alignment(descriptor).value_or(0) > 0;
    return is_on_device ? TimesTell::when_it_is_done : TimesTell::nothing;
  }
  return is_in(with_times_at_once) ? TimesTell::when_it_is_done : TimesTell::once_written;
}

bool write_out(int descriptor, Extent extent) {
  constexpr unsigned how =
      SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER;
  // Past our own tracing, as it is no call of the program's.
  return ::syscall(SYS_sync_file_range, descriptor, extent.offset, extent.length, how) == 0;
}

std::int64_t file_clock_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  return nanoseconds(now);
}

}  // namespace forebay
