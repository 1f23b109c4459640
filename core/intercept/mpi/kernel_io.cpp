#include "core/intercept/mpi/kernel_io.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <charconv>
#include <string_view>

namespace forebay {
namespace {

std::int64_t field(std::string_view text, std::string_view key) {
  const auto at = text.find(key);
  if (at == std::string_view::npos) return 0;
  const char* first = text.data() + at + key.size();
  std::int64_t value = 0;
  std::from_chars(first, text.data() + text.size(), value);
  return value;
}

/// The counters, and in `own_bytes` how many bytes this look at them read.
KernelIo look(std::int64_t& own_bytes) {
  own_bytes = 0;
  const int fd = open("/proc/self/io", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return {};
  char text[512];
  const ssize_t length = ::read(fd, text, sizeof text);
  close(fd);
  if (length <= 0) return {};
  own_bytes = length;
  const std::string_view view(text, static_cast<std::size_t>(length));
  return {field(view, "rchar: "), field(view, "wchar: "), field(view, "syscr: "),
          field(view, "syscw: ")};
}

}  // namespace

void KernelIoSample::start() {
  std::int64_t own_bytes = 0;
  before_ = look(own_bytes);
  // The kernel adds a read after it is done, so the text does not hold itself yet.
  before_.read_bytes += own_bytes;
  before_.read_calls += 1;
}

KernelIo KernelIoSample::stop() const {
  std::int64_t own_bytes = 0;
  const KernelIo after = look(own_bytes);
  return {after.read_bytes - before_.read_bytes, after.write_bytes - before_.write_bytes,
          after.read_calls - before_.read_calls, after.write_calls - before_.write_calls};
}

}  // namespace forebay
