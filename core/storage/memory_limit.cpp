#include "core/storage/memory_limit.hpp"

#include <algorithm>
#include <charconv>
#include <initializer_list>
#include <string_view>

#include "core/storage/text_file.hpp"

namespace forebay {
namespace {

/// How one version of control groups calls what is looked at.
struct Names {
  const char* mounted;
  const char* usage;
  std::initializer_list<const char*> limits;
  /// In memory.stat; the group's and those below it together.
  std::initializer_list<std::string_view> page_cache;
};

const Names version_1{"/sys/fs/cgroup/memory",
                      "memory.usage_in_bytes",
                      {"memory.limit_in_bytes"},
                      {"total_active_file", "total_inactive_file"}};
/// Beyond memory.high a group is made to wait.
const Names version_2{"/sys/fs/cgroup",
                      "memory.current",
                      {"memory.max", "memory.high"},
                      {"active_file", "inactive_file"}};

/// No value: it is none, as "max".
std::optional<Bytes> number(std::string_view text) {
  Bytes value = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
  return read.ec == std::errc() ? std::optional(value) : std::nullopt;
}

std::optional<Bytes> number_in(const std::string& path) {
  const auto text = text_of(path);
  return text ? number(*text) : std::nullopt;
}

/// Takes the first part of `rest`, up to `end` or all of it.
std::string_view take(std::string_view& rest, char end) {
  const std::size_t length = std::min(rest.find(end), rest.size());
  const std::string_view part = rest.substr(0, length);
  rest.remove_prefix(std::min(length + 1, rest.size()));
  return part;
}

Bytes page_cache_of(const std::string& group, const Names& names) {
  const auto text = text_of(group + "/memory.stat");
  std::string_view rest = text ? std::string_view(*text) : std::string_view();
  Bytes bytes = 0;
  while (!rest.empty()) {
    std::string_view line = take(rest, '\n');
    const std::string_view name = take(line, ' ');
    if (std::ranges::find(names.page_cache, name) != names.page_cache.end()) {
      bytes += number(line).value_or(0);
    }
  }
  return bytes;
}

std::optional<Bytes> left_in(const std::string& group, const Names& names) {
  std::optional<Bytes> limit;
  for (const char* name : names.limits) {
    const auto found = number_in(group + "/" + name);
    if (found) limit = std::min(limit.value_or(*found), *found);
  }
  const auto usage = number_in(group + "/" + names.usage);
  if (!limit || !usage) return std::nullopt;
  const Bytes taken = std::max<Bytes>(*usage - page_cache_of(group, names), 0);
  return std::max<Bytes>(*limit - taken, 0);
}

/// Of the group at `path` and those that it is in. In a container the path may be the host's, of
/// which only the last is there, mounted as the first.
std::optional<Bytes> least_left(const std::string& root, std::string path, const Names& names) {
  const std::string top = root + names.mounted;
  std::optional<Bytes> least;
  for (;;) {
    const auto left = left_in(top + path, names);
    if (left) least = std::min(least.value_or(*left), *left);
    if (path.empty()) return least;
    path.resize(std::min(path.rfind('/'), path.size() - 1));
  }
}

bool names_memory(std::string_view controllers) {
  while (!controllers.empty()) {
    if (take(controllers, ',') == "memory") return true;
  }
  return false;
}

}  // namespace

std::optional<Bytes> memory_left(const std::string& root) {
  const auto groups = text_of(root + "/proc/self/cgroup");
  std::string_view rest = groups ? std::string_view(*groups) : std::string_view();
  std::optional<Bytes> least;
  // Each line is "hierarchy:controllers:path"; of version 2 there are none between the colons.
  while (!rest.empty()) {
    std::string_view line = take(rest, '\n');
    take(line, ':');
    const std::string_view controllers = take(line, ':');
    if (!controllers.empty() && !names_memory(controllers)) continue;
    const Names& names = controllers.empty() ? version_2 : version_1;
    const auto left = least_left(root, std::string(line), names);
    if (left) least = std::min(least.value_or(*left), *left);
  }
  return least;
}

}  // namespace forebay
