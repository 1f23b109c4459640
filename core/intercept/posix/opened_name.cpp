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

OpenedName::OpenedName(int descriptor, int directory, const char* path)
    : names_(std::make_unique_for_overwrite<Names>()) {
  read_link(descriptor, names_->real);
  auto& named = names_->named;
  if (path[0] == '/') {
    std::snprintf(named.data(), named.size(), "%s", path);
    return;
  }
  if (directory != AT_FDCWD) {
    read_link(directory, std::span(named).first(PATH_MAX));
  } else if (::syscall(SYS_getcwd, named.data(), PATH_MAX) < 0) {
    named[0] = '\0';
  }
  const std::size_t length = std::strlen(named.data());
  std::snprintf(named.data() + length, named.size() - length, "/%s", path);
}

}  // namespace forebay::posix
