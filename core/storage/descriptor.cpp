#include "core/storage/descriptor.hpp"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace forebay {

bool descriptors_run_short() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return false;
  // The kernel gives the lowest number that is free, so the next below and the next above our
  // border say how many are taken on either side.
  const int low = ::open("/", O_PATH | O_CLOEXEC);
  if (low < 0) return errno == EMFILE;
  const int high = ::fcntl(low, F_DUPFD_CLOEXEC, Descriptor::lowest);
  const bool full = high < 0 && errno == EMFILE;
  if (high >= 0) ::close(high);
  ::close(low);
  if (full) return true;
  const int taken = std::min(low, Descriptor::lowest) + std::max(high - Descriptor::lowest, 0);
  return static_cast<rlim_t>(taken) >= limit.rlim_cur / 2;
}

Status make_names_durable(int directory, const std::string& path) {
  if (::fsync(directory) == 0 || errno == EINVAL) return {};
  return fail(errno, "make durable " + path);
}

}  // namespace forebay
