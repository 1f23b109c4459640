#pragma once

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <string_view>

namespace forebay {

/// When this process was started, in clock ticks since the system was. An exec changes nothing.
/// With its number it names a process for good. 0: it cannot be told. Takes no memory from the
/// heap, and calls nothing that a program could have replaced. [proc(5), /proc/self/stat: "pid
/// (name) state ...", the 22nd field; the name may hold anything]
inline std::int64_t started_jiffies() {
  std::array<char, 1024> text{};
  const auto fd =
      static_cast<int>(::syscall(SYS_openat, AT_FDCWD, "/proc/self/stat", O_RDONLY | O_CLOEXEC));
  if (fd < 0) return 0;
  const long length = ::syscall(SYS_read, fd, text.data(), text.size());
  ::syscall(SYS_close, fd);
  std::string_view rest(text.data(), static_cast<std::size_t>(std::max(length, 0L)));
  rest.remove_prefix(std::min(rest.rfind(')') + 1, rest.size()));
  constexpr int fields_before = 20;
  for (int i = 0; i < fields_before; ++i) {
    rest.remove_prefix(std::min(rest.find(' ') + 1, rest.size()));
  }
  std::int64_t jiffies = 0;
  std::from_chars(rest.data(), rest.data() + rest.size(), jiffies);
  return jiffies;
}

/// The same in seconds since 1970. 0: it cannot be told.
inline std::int64_t started_unix_s() {
  const std::int64_t ticks = started_jiffies();
  const long ticks_per_s = ::sysconf(_SC_CLK_TCK);
  timespec since_boot{};
  if (ticks == 0 || ticks_per_s <= 0 || ::clock_gettime(CLOCK_BOOTTIME, &since_boot) != 0) return 0;
  return ::time(nullptr) - (since_boot.tv_sec - ticks / ticks_per_s);
}

}  // namespace forebay
