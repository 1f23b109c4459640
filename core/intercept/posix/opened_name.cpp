#include "core/intercept/posix/opened_name.hpp"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <span>

namespace forebay::posix {
namespace {

void read_link(int descriptor, std::span<char> into) {
  std::array<char, 32> link{};
  std::snprintf(link.data(), link.size(), "/proc/self/fd/%d", descriptor);
  const ssize_t length = ::readlink(link.data(), into.data(), into.size() - 1);
  into[static_cast<std::size_t>(std::max<ssize_t>(length, 0))] = '\0';
}

}  // namespace

OpenedName::OpenedName(int descriptor, int directory, const char* path) {
  read_link(descriptor, real_);
  if (path[0] == '/') {
    std::snprintf(named_.data(), named_.size(), "%s", path);
    return;
  }
  if (directory != AT_FDCWD) {
    read_link(directory, std::span(named_).first(PATH_MAX));
  } else if (::syscall(SYS_getcwd, named_.data(), PATH_MAX) < 0) {
    named_[0] = '\0';
  }
  const std::size_t length = std::strlen(named_.data());
  std::snprintf(named_.data() + length, named_.size() - length, "/%s", path);
}

}  // namespace forebay::posix
