#include "core/engine/cache/file_identity.hpp"

#include <sys/stat.h>

#include <cerrno>
#include <cstdlib>
#include <memory>

namespace forebay {

Result<FileIdentity> identify(const std::string& path) {
  const std::unique_ptr<char, decltype(&std::free)> real(::realpath(path.c_str(), nullptr),
                                                         &std::free);
  struct stat status{};
  if (real == nullptr || ::stat(real.get(), &status) != 0) {
    return fail(errno, "find out which file is " + path);
  }
  return FileIdentity{real.get(), status.st_dev, status.st_ino};
}

}  // namespace forebay
