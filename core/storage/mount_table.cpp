#include "core/storage/mount_table.hpp"

#include <mntent.h>

#include <array>
#include <cstddef>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string_view>
#include <system_error>

namespace forebay {
namespace {

/// Whether a file system mounted on `point` is on the way to `path`; both are absolute, without
/// "..".
bool on_the_way(std::string_view point, std::string_view path) {
  if (point == "/") return true;
  return path.starts_with(point) && (path.size() == point.size() || path[point.size()] == '/');
}

struct CloseTable {
  void operator()(std::FILE* table) const { ::endmntent(table); }
};

}  // namespace

std::string mounted_type(const std::string& path) {
  std::error_code error;
  const std::string real = std::filesystem::weakly_canonical(path, error);
  if (error) return {};
  const std::unique_ptr<std::FILE, CloseTable> table(::setmntent("/proc/self/mounts", "re"));
  if (!table) return {};
  std::array<char, 8192> text{};  // One line of the table; longer ones are cut by getmntent.
  mntent entry{};
  std::string type;
  std::size_t deepest = 0;
  while (::getmntent_r(table.get(), &entry, text.data(), static_cast<int>(text.size())) !=
         nullptr) {
    const std::string_view point = entry.mnt_dir;
    // Of those on one point, the last was mounted over the others.
    if (point.size() < deepest || !on_the_way(point, real)) continue;
    deepest = point.size();
    type = entry.mnt_type;
  }
  return type;
}

}  // namespace forebay
