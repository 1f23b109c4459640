#include "toolkit/native/opened_files.hpp"

#include <fcntl.h>
#include <limits.h>
#include <mntent.h>
#include <sys/fanotify.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <string_view>
#include <utility>

namespace forebay {
namespace {

/// What the kernel or memory makes up has nothing to be read ahead.
constexpr std::array<std::string_view, 20> without_storage{
    "autofs", "binfmt_misc", "bpf",        "cgroup",    "cgroup2", "configfs", "debugfs",
    "devpts", "devtmpfs",    "fusectl",    "hugetlbfs", "mqueue",  "nsfs",     "proc",
    "pstore", "ramfs",       "securityfs", "sysfs",     "tmpfs",   "tracefs"};

constexpr std::uint64_t what = FAN_OPEN | FAN_CLOSE_WRITE;

std::string name_of(int descriptor) {
  std::array<char, PATH_MAX> name{};
  const std::string link = "/proc/self/fd/" + std::to_string(descriptor);
  const ssize_t length = ::readlink(link.c_str(), name.data(), name.size());
  return {name.data(), static_cast<std::size_t>(std::max<ssize_t>(length, 0))};
}

}  // namespace

Result<std::unique_ptr<OpenedFiles>> OpenedFiles::begin() {
  Descriptor group(::fanotify_init(
      FAN_CLASS_NOTIF | FAN_CLOEXEC | FAN_NONBLOCK | FAN_UNLIMITED_QUEUE | FAN_UNLIMITED_MARKS,
      O_RDONLY | O_CLOEXEC | O_LARGEFILE | O_NOATIME));
  if (!group.valid()) {
    return tl::unexpected(
        error_from_errno(errno, "watch which files are opened (fanotify, which takes root)"));
  }
  std::FILE* table = ::setmntent("/proc/self/mounts", "re");
  if (table == nullptr) return tl::unexpected(error_from_errno(errno, "open /proc/self/mounts"));
  bool any = false;
  while (const mntent* mount = ::getmntent(table)) {
    if (std::ranges::find(without_storage, mount->mnt_type) != without_storage.end()) continue;
    any |= ::fanotify_mark(group.get(), FAN_MARK_ADD | FAN_MARK_FILESYSTEM, what, AT_FDCWD,
                           mount->mnt_dir) == 0;
  }
  const int reason = errno;
  ::endmntent(table);
  if (!any) {
    return tl::unexpected(error_from_errno(reason, "watch which files are opened (fanotify)"));
  }
  return std::unique_ptr<OpenedFiles>(new OpenedFiles(std::move(group)));
}

void OpenedFiles::take(const std::function<void(const Opened&)>& seen) {
  alignas(fanotify_event_metadata) std::array<char, 16384> events{};
  for (;;) {
    ssize_t length = ::read(group_.get(), events.data(), events.size());
    if (length <= 0) return;
    auto* event = reinterpret_cast<fanotify_event_metadata*>(events.data());
    for (; FAN_EVENT_OK(event, length); event = FAN_EVENT_NEXT(event, length)) {
      if (event->fd < 0) continue;  // The queue was full.
      struct stat status{};
      if (event->pid != ::getpid() && ::fstat(event->fd, &status) == 0 && S_ISREG(status.st_mode)) {
        const bool was_written = (event->mask & FAN_CLOSE_WRITE) != 0;
        seen({event->fd, name_of(event->fd), version_in(status), was_written});
      }
      ::close(event->fd);
    }
  }
}

}  // namespace forebay
