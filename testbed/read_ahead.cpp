#include "testbed/read_ahead.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>

#include "testbed/file_descriptor.hpp"

namespace forebay::testbed {

Result<ReadAhead> ReadAhead::of(const std::string& mount) {
  struct statx status{};
  // DONT_SYNC: the device's number is the kernel's own, and a file system that asks before it
  // serves would wait for itself.
  if (::statx(AT_FDCWD, mount.c_str(), AT_STATX_DONT_SYNC, 0, &status) != 0) {
    return fail(errno, "stat " + mount);
  }
  return ReadAhead(fmt::format("/sys/class/bdi/{}:{}/read_ahead_kb", status.stx_dev_major,
                               status.stx_dev_minor));
}

Result<Bytes> ReadAhead::bytes() const {
  const FileDescriptor file(::open(path_.c_str(), O_RDONLY | O_CLOEXEC));
  char text[32];
  const ssize_t length = file.valid() ? ::read(file.get(), text, sizeof text) : -1;
  if (length < 0) return fail(errno, "read " + path_);
  Bytes kib = 0;
  if (std::from_chars(text, text + length, kib).ec != std::errc{}) {
    return tl::unexpected(Error{ErrorKind::io, 0, path_ + " holds no number"});
  }
  return kib * KiB;
}

Status ReadAhead::set(Bytes bytes) const {
  const std::string text = std::to_string(bytes / KiB);
  const FileDescriptor file(::open(path_.c_str(), O_WRONLY | O_CLOEXEC));
  if (!file.valid() ||
      ::write(file.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size())) {
    return fail(errno, "set the read-ahead in " + path_);
  }
  return {};
}

}  // namespace forebay::testbed
