#pragma once

#include <array>
#include <climits>
#include <cstddef>

namespace forebay::posix {

/// What a file that was opened is called. No heap memory is taken.
class OpenedName {
 public:
  /// The file behind `descriptor`, which was opened as `path` beside `directory` (or AT_FDCWD).
  OpenedName(int descriptor, int directory, const char* path);

  /// As the program named it, made absolute.
  const char* named() const { return named_.data(); }
  /// Without symbolic links.
  const char* real() const { return real_.data(); }

 private:
  std::array<char, std::size_t{2} * PATH_MAX> named_{};
  std::array<char, PATH_MAX> real_{};
};

}  // namespace forebay::posix
