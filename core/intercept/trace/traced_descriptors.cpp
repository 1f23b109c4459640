#include "core/intercept/trace/traced_descriptors.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <climits>
#include <cstddef>
#include <cstdio>
#include <cstring>

#include "core/engine/trace/recorder.hpp"
#include "core/engine/trace/trace_clock.hpp"

namespace forebay::trace {

namespace detail {
std::array<std::atomic<DescriptorKind>, most_descriptors> descriptor_kinds{};
}  // namespace detail

namespace {

DescriptorKind kind_of(const struct stat64& status) {
  const bool is_file =
      S_ISREG(status.st_mode) || S_ISDIR(status.st_mode) || S_ISBLK(status.st_mode);
  return is_file ? DescriptorKind::traced : DescriptorKind::untraced;
}

/// Not in a child that has our memory (vfork), but descriptors of its own.
void set_kind(int descriptor, DescriptorKind kind) {
  if (is_vforked()) return;
  const auto index = static_cast<unsigned>(descriptor);
  if (index < most_descriptors) {
    detail::descriptor_kinds[index].store(kind, std::memory_order_relaxed);
  }
}

/// What the kernel calls the file behind a descriptor; empty: nothing is there.
class FileName {
 public:
  explicit FileName(int descriptor) {
    std::array<char, 32> link{};
    std::snprintf(link.data(), link.size(), "/proc/self/fd/%d", descriptor);
    length_ = ::syscall(SYS_readlinkat, AT_FDCWD, link.data(), name_.data(), name_.size());
  }
  std::string_view text() const {
    return {name_.data(), static_cast<std::size_t>(std::max(length_, 0L))};
  }

 private:
  std::array<char, PATH_MAX> name_{};
  long length_ = 0;
};

/// What is behind a descriptor whose opening was not seen.
DescriptorKind find(int descriptor) {
  struct stat64 status{};
  if (::syscall(SYS_fstat, descriptor, &status) != 0) return DescriptorKind::unknown;
  const DescriptorKind kind = kind_of(status);
  if (kind == DescriptorKind::traced) {
    FoundDescriptor found;
    found.ticks = ticks();
    found.device = status.st_dev;
    found.inode = status.st_ino;
    found.size = status.st_size;
    found.position = ::syscall(SYS_lseek, descriptor, 0, SEEK_CUR);
    found.descriptor = descriptor;
    found.mode = status.st_mode;
    found.flags = static_cast<int>(::syscall(SYS_fcntl, descriptor, F_GETFL, 0));
    define(TraceDefinition::descriptor, 0, bytes_of(found), bytes_of(FileName(descriptor).text()));
  }
  set_kind(descriptor, kind);
  return kind;
}

}  // namespace

namespace detail {

bool is_found_traced(int descriptor) {
  if (!is_on() || is_vforked() || descriptor < 0) return false;
  const int before = errno;
  const bool is_file = find(descriptor) == DescriptorKind::traced;
  errno = before;
  return is_file;
}

}  // namespace detail

void is_new(int descriptor, const TraceEvent& opening) {
  const int before = errno;
  struct stat64 status;  // The kernel fills it.
  if (::syscall(SYS_fstat, descriptor, &status) != 0) {
    errno = before;
    return add(opening);
  }
  const DescriptorKind kind = kind_of(status);
  set_kind(descriptor, kind);
  if (kind != DescriptorKind::traced) return add(opening);
  add(opening, TraceEvent{.begin = opening.begin + opening.duration,
                          .duration = status.st_dev,
                          .offset = static_cast<std::int64_t>(status.st_ino),
                          .length = status.st_size,
                          .result = status.st_mode,
                          .descriptor = descriptor,
                          .call = static_cast<std::uint16_t>(TracedCall::is_file),
                          .within = 0,
                          .argument = 0});
}

std::uint64_t key_of_file(int descriptor) {
  const int before = errno;
  const FileName name(descriptor);
  errno = before;
  return key_of(name.text());
}

void is_copied(int descriptor, int copy) {
  const auto index = static_cast<unsigned>(descriptor);
  set_kind(copy, index < most_descriptors
                     ? detail::descriptor_kinds[index].load(std::memory_order_relaxed)
                     : DescriptorKind::unknown);
}

void is_over(int descriptor) { set_kind(descriptor, DescriptorKind::unknown); }

void describe_descriptors() {
  const auto directory = static_cast<int>(
      ::syscall(SYS_openat, AT_FDCWD, "/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (directory < 0) return;
  alignas(dirent64) std::array<char, 2048> entries{};
  for (long length = 0;
       (length = ::syscall(SYS_getdents64, directory, entries.data(), entries.size())) > 0;) {
    for (long at = 0; at < length;) {
      dirent64 entry{};
      const auto* place = entries.data() + at;
      std::memcpy(&entry, place, offsetof(dirent64, d_name));
      const char* name = place + offsetof(dirent64, d_name);
      int descriptor = -1;
      std::from_chars(name, name + std::strlen(name), descriptor);
      if (descriptor >= 0 && descriptor != directory) find(descriptor);
      at += entry.d_reclen;
    }
  }
  ::syscall(SYS_close, directory);
}

}  // namespace forebay::trace
