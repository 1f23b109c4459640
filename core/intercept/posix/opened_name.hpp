#pragma once

#include <array>
#include <climits>
#include <cstddef>
#include <memory>

namespace forebay::posix {

/// What a file that was opened is called. Kept in memory of our own heap: on the stack of a thread,
/// or of a signal handler, there may be little room.
class OpenedName {
 public:
  /// The file behind `descriptor`, which was opened as `path` beside `directory` (or AT_FDCWD).
  OpenedName(int descriptor, int directory, const char* path);

  /// As the program named it, made absolute.
  const char* named() const { return names_->named.data(); }
  /// Without symbolic links.
  const char* real() const { return names_->real.data(); }

 private:
  struct Names {
    std::array<char, std::size_t{2} * PATH_MAX> named;
    std::array<char, PATH_MAX> real;
  };
  std::unique_ptr<Names> names_;
};

}  // namespace forebay::posix
