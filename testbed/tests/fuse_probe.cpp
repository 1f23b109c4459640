#include "testbed/tests/fuse_probe.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mount.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "testbed/file_descriptor.hpp"

namespace forebay::testbed {

std::optional<std::string> why_fuse_is_unusable() {
  const FileDescriptor device(::open("/dev/fuse", O_RDWR | O_CLOEXEC));
  if (!device.valid()) return fmt::format("/dev/fuse cannot be opened: {}", std::strerror(errno));
  // The tests unmount with it, and without root it is what mounts.
  if (std::system("command -v fusermount3 >/dev/null") != 0) {
    return "fusermount3 is not there (Debian package fuse3)";
  }
  if (::geteuid() != 0) return std::nullopt;
  std::string directory = (std::filesystem::temp_directory_path() / "fuse_probe_XXXXXX").string();
  if (::mkdtemp(directory.data()) == nullptr) return "no temporary directory can be made";
  const std::string options =
      fmt::format("fd={},rootmode=40000,user_id=0,group_id=0", device.get());
  const int failed =
      ::mount("probe", directory.c_str(), "fuse", MS_NOSUID | MS_NODEV, options.c_str());
  const int error = errno;
  if (failed == 0) ::umount2(directory.c_str(), MNT_DETACH);
  ::rmdir(directory.c_str());
  if (failed == 0) return std::nullopt;
  return fmt::format("mounting FUSE is refused: {}", std::strerror(error));
}

}  // namespace forebay::testbed
