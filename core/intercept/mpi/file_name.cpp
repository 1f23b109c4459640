#include "core/intercept/mpi/file_name.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <string_view>

namespace forebay {
namespace {

/// `path` from the root, so that it means the same file after the program changed its directory.
std::string from_root(const std::string& path) {
  std::error_code unknown_directory;
  const auto absolute = std::filesystem::absolute(path, unknown_directory);
  if (unknown_directory) return path;
  // Where a link leads, ".." goes back from there: only the file system can say to what.
  const bool climbs = std::find(absolute.begin(), absolute.end(), "..") != absolute.end();
  return climbs ? absolute.string() : absolute.lexically_normal().string();
}

bool exists(const std::string& path) {
  std::error_code unknown;
  return !path.empty() && std::filesystem::exists(path, unknown);
}

}  // namespace

std::string declared_path(const std::string& name) {
  static constexpr std::string_view file_systems[] = {"ufs:", "nfs:", "xfs:", "lustre:", "gpfs:"};
  for (const std::string_view prefix : file_systems) {
    if (name.starts_with(prefix)) return from_root(name.substr(prefix.size()));
  }
  return from_root(name);
}

std::optional<std::string> opened_path(const std::string& name) {
  const auto colon = name.find(':');
  if (colon == std::string::npos) return from_root(name);
  const std::string rest = name.substr(colon + 1);
  const bool whole_is_there = exists(name);
  if (whole_is_there == exists(rest)) return {};
  return from_root(whole_is_there ? name : rest);
}

std::optional<FileId> id_at(const char* path) {
  struct stat status{};
  if (::stat(path, &status) != 0) return std::nullopt;
  return FileId{status.st_dev, status.st_ino};
}

std::string family_of(const std::string& path) {
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  const std::size_t name = path.rfind('/') + 1;  // 0 where there is none.
  std::string family = path.substr(0, name);
  for (std::size_t i = name; i < path.size(); ++i) {
    if (!is_digit(path[i])) {
      family += path[i];
    } else if (i == name || !is_digit(path[i - 1])) {
      family += '#';
    }
  }
  return family;
}

}  // namespace forebay
