#include "core/storage/text_file.hpp"

#include <array>
#include <cerrno>
#include <fstream>

namespace forebay {

Result<std::string> text_of(const std::string& path) {
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  if (!file.is_open()) return fail(errno != 0 ? errno : EIO, "open " + path);
  std::string text;
  std::array<char, 4096> part{};
  do {
    file.read(part.data(), part.size());
    text.append(part.data(), static_cast<std::size_t>(file.gcount()));
  } while (file);
  if (file.bad()) return fail(errno != 0 ? errno : EIO, "read " + path);
  return text;
}

}  // namespace forebay
