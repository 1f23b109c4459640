#include "core/engine/cache/file_identity.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <cerrno>
#include <cstdlib>
#include <memory>

namespace forebay {
namespace {

std::int64_t made_unix_ns(const struct statx& status) {
  constexpr std::int64_t second = 1'000'000'000;
  if ((status.stx_mask & STATX_BTIME) == 0) return 0;
  return status.stx_btime.tv_sec * second + status.stx_btime.tv_nsec;
}

}  // namespace

bool same_file(const FileIdentity& a, const FileIdentity& b) {
  const bool known = a.made_unix_ns != 0 && b.made_unix_ns != 0;
  return a.inode == b.inode && (!known || a.made_unix_ns == b.made_unix_ns);
}

Result<FileIdentity> identify(const std::string& path) {
  const std::unique_ptr<char, decltype(&std::free)> real(::realpath(path.c_str(), nullptr),
                                                         &std::free);
  struct statx status{};
  if (real == nullptr || ::statx(AT_FDCWD, real.get(), 0, STATX_INO | STATX_BTIME, &status) != 0) {
    return fail(errno, "find out which file is " + path);
  }
  return FileIdentity{real.get(), ::makedev(status.stx_dev_major, status.stx_dev_minor),
                      status.stx_ino, made_unix_ns(status)};
}

}  // namespace forebay
