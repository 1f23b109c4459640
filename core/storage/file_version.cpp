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

namespace forebay {
namespace {

constexpr std::int64_t second_ns = 1'000'000'000;

constexpr std::array<std::uint32_t, 15> without_times = {
    TMPFS_MAGIC,   RAMFS_MAGIC,    HUGETLBFS_MAGIC,  PROC_SUPER_MAGIC,     SYSFS_MAGIC,
    DEBUGFS_MAGIC, TRACEFS_MAGIC,  SECURITYFS_MAGIC, CGROUP_SUPER_MAGIC,   CGROUP2_SUPER_MAGIC,
    BPF_FS_MAGIC,  EFIVARFS_MAGIC, PSTOREFS_MAGIC,   RDTGROUP_SUPER_MAGIC, SELINUX_MAGIC};

std::int64_t nanoseconds(const timespec& time) { return time.tv_sec * second_ns + time.tv_nsec; }

}  // namespace

FileVersion version_in(const struct stat& status) {
  return {{status.st_dev, status.st_ino},
          status.st_size,
          nanoseconds(status.st_mtim),
          nanoseconds(status.st_ctim)};
}

std::optional<FileVersion> version_of(int descriptor) {
  struct stat status{};
  if (::fstat(descriptor, &status) != 0) return std::nullopt;
  return version_in(status);
}

std::optional<FileVersion> served_version_of(int descriptor) {
  struct statx status{};
  const int how = AT_EMPTY_PATH | AT_STATX_FORCE_SYNC;
  if (::statx(descriptor, "", how, STATX_BASIC_STATS, &status) != 0) return std::nullopt;
  const auto time_ns = [](const statx_timestamp& time) {
    return time.tv_sec * second_ns + static_cast<std::int64_t>(time.tv_nsec);
  };
  return FileVersion{{::makedev(status.stx_dev_major, status.stx_dev_minor), status.stx_ino},
                     static_cast<Bytes>(status.stx_size),
                     time_ns(status.stx_mtime),
                     time_ns(status.stx_ctime)};
}

bool tells_changes(int descriptor) {
  struct statfs status{};
  if (::fstatfs(descriptor, &status) != 0) return false;
  // f_type is a signed word of the machine's width; the magic numbers have 32 bits.
  return std::ranges::find(without_times, static_cast<std::uint32_t>(status.f_type)) ==
         without_times.end();
}

std::int64_t file_clock_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  return nanoseconds(now);
}

Bytes resident_bytes(int descriptor, Extent extent) {
  // The C library has no wrapper yet; the number is the same on every architecture.
  constexpr long cachestat_number = 451;
  struct Counts {
    std::uint64_t cached, dirty, writeback, evicted, recently_evicted;
  };
  const std::array<std::uint64_t, 2> range = {static_cast<std::uint64_t>(extent.offset),
                                              static_cast<std::uint64_t>(extent.length)};
  Counts counts{};
  if (::syscall(cachestat_number, descriptor, range.data(), &counts, 0) != 0) return 0;
  return static_cast<Bytes>(counts.cached) * ::sysconf(_SC_PAGESIZE);
}

}  // namespace forebay
