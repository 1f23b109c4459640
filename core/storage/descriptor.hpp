#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <string>
#include <utility>

#include "core/model/error.hpp"

namespace forebay {

/// Owns a file descriptor; -1 is none.
class Descriptor {
 public:
  /// Our descriptors live above this one: programs and shells assume numbers below it ("exec
  /// 9>log", "the next open gives 3"), and must not find us there.
  static constexpr int lowest = 100;

  Descriptor() = default;
  /// Takes `fd` over, and moves it out of the low numbers; where the process may not have so many,
  /// it stays.
  explicit Descriptor(int fd) : fd_(fd) {
    if (fd_ < 0 || fd_ >= lowest) return;
    const int high = ::fcntl(fd_, F_DUPFD_CLOEXEC, lowest);
    if (high < 0) return;
    ::close(fd_);
    fd_ = high;
  }
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }

  int get() const { return fd_; }
  bool valid() const { return fd_ >= 0; }

 private:
  int fd_ = -1;
};

/// The process has taken half of the descriptors that it may have (RLIMIT_NOFILE). What is left is
/// the program's: it opens as many files as its limit allows, and does not know of ours.
bool descriptors_run_short();

/// The names in `directory`, which is open as `path`. Where a file system knows no such thing
/// (EINVAL), it has its own ways.
Status make_names_durable(int directory, const std::string& path);

}  // namespace forebay
