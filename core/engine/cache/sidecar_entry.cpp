#include "core/engine/cache/sidecar_entry.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <filesystem>
#include <span>

#include "core/engine/cache/crc32c.hpp"
#include "core/engine/cache/sealed_block.hpp"
#include "core/model/bytes_beyond_utf8.hpp"
#include "core/storage/descriptor.hpp"

namespace forebay {
namespace {

using nlohmann::json;

/// Behind the key of a path, the key of its bytes.
constexpr std::string_view bytes_ending = "_bytes";
constexpr int most_nested = 8;
/// Each one that fails means that another rank had just removed the directory.
constexpr int most_attempts = 1000;
constexpr std::size_t longest_text = std::size_t{1} << 20;

tl::unexpected<Error> malformed(ErrorKind kind, std::string what) {
  return tl::unexpected(Error{kind, 0, std::move(what)});
}

/// Text that is no UTF-8 is not for JSON; a person still recognises what is left of it.
std::string dumped(const json& value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

std::string checksum(const json& content) {
  const std::string text = dumped(content);
  return fmt::format("{:08x}", crc32c(std::as_bytes(std::span(text))));
}

Status write_all(int descriptor, std::string_view text, const std::string& path) {
  while (!text.empty()) {
    const ssize_t moved = ::write(descriptor, text.data(), text.size());
    if (moved < 0 && errno == EINTR) continue;
    if (moved <= 0) return fail(moved == 0 ? EIO : errno, "write " + path);
    text.remove_prefix(static_cast<std::size_t>(moved));
  }
  return {};
}

Status make_names_in_durable(const std::string& directory) {
  const Descriptor names(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!names.valid()) return fail(errno, "open " + directory);
  return make_names_durable(names.get(), directory);
}

/// What an entry is called while a process writes it; the process's number follows.
std::string unfinished_name(const std::string& name) { return "." + name.substr(0, 200) + "-"; }

/// An empty file in `directory`, which is made if it is not there. Another rank that takes the last
/// notice away may remove the directory at any moment; with a file in it, it stays.
Result<Descriptor> make_file(const std::string& directory, const std::string& path) {
  for (int attempt = 1;; ++attempt) {
    if (::mkdir(directory.c_str(), 0777) != 0 && errno != EEXIST) {
      return fail(errno, "make " + directory);
    }
    Descriptor file(
        ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0666));
    if (file.valid()) return file;
    if (errno != ENOENT || attempt == most_attempts) return fail(errno, "make " + path);
  }
}

}  // namespace

std::string sealed_entry(const EntryKind& kind, const json& content) {
  // Parsed back, so that the checksum is of what a reader will see.
  const json clean = json::parse(dumped(content), nullptr, false);
  const json whole = {{"format", kind.format},
                      {"version", kind.version},
                      {"content", clean},
                      {"checksum", checksum(clean)}};
  return dumped(whole) + "\n";
}

Result<json> opened_entry(const EntryKind& kind, std::string_view text) {
  // What is nested deeper than ours is left out; writing it again would recurse.
  const auto shallow = [](int depth, json::parse_event_t, json&) { return depth <= most_nested; };
  const json whole = json::parse(text, shallow, false);
  if (!whole.is_object() || whole.value("format", json()) != kind.format) {
    return malformed(ErrorKind::io, fmt::format("this is no {}", kind.format));
  }
  if (int found = 0; !get_field(whole, "version", found) || found != kind.version) {
    return malformed(
        ErrorKind::unsupported,
        fmt::format("the {} is of format version {}, and this Forebay reads version {}",
                    kind.format, dumped(whole.value("version", json())), kind.version));
  }
  const auto content = whole.find("content");
  if (content == whole.end() || !content->is_object() ||
      whole.value("checksum", json()) != checksum(*content)) {
    return malformed(ErrorKind::io,
                     fmt::format("the {} is damaged: its checksum is wrong", kind.format));
  }
  return *content;
}

void put_path(json& content, const std::string& key, const std::string& path) {
  content[key] = path;
  const std::string bytes = bytes_beyond_utf8(path);
  if (!bytes.empty()) content[key + std::string(bytes_ending)] = bytes;
}

bool get_path(const json& content, const std::string& key, std::string& path) {
  if (!get_field(content, key.c_str(), path)) return false;
  std::string digits;
  if (!get_field(content, (key + std::string(bytes_ending)).c_str(), digits)) return true;
  if (digits.size() % 2 != 0) return false;
  std::string bytes;
  for (std::size_t at = 0; at < digits.size(); at += 2) {
    unsigned char byte = 0;
    const char* const end = digits.data() + at + 2;
    if (std::from_chars(digits.data() + at, end, byte, 16).ptr != end) return false;
    bytes += static_cast<char>(byte);
  }
  path = std::move(bytes);
  return true;
}

std::vector<std::string> listed_logs(const nlohmann::json& content) {
  std::vector<std::string> logs;
  if (const auto list = content.find("logs"); list != content.end() && list->is_array()) {
    for (const nlohmann::json& log : *list) {
      if (log.is_string()) logs.push_back(log.get<std::string>());
    }
  }
  return logs;
}

Status put_entry(const std::string& directory, const std::string& name, std::string_view text,
                 bool durable) {
  const std::string path = directory + "/" + name;
  const std::string temporary =
      fmt::format("{}/{}{}", directory, unfinished_name(name), ::getpid());
  Status status;
  {
    const auto file = make_file(directory, temporary);
    if (!file) return tl::unexpected(file.error());
    status = write_all(file->get(), text, temporary);
    if (status && durable && ::fsync(file->get()) != 0) {
      status = fail(errno, "make durable " + temporary);
    }
  }
  if (status && ::rename(temporary.c_str(), path.c_str()) != 0) {
    status = fail(errno, "make " + path);
  }
  if (!status) {
    ::unlink(temporary.c_str());
    return status;
  }
  if (!durable) return {};
  if (auto named = make_names_in_durable(directory); !named) return named;
  // Its own name, too: it may be new.
  return make_names_in_durable(directory + "/..");
}

Result<std::optional<std::string>> get_entry(const std::string& path, bool own) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (!file.valid()) {
    if (errno == ENOENT || errno == ENOTDIR) return std::nullopt;
    return fail(errno, "open " + path);
  }
  struct stat status{};
  if (::fstat(file.get(), &status) != 0) return fail(errno, "look at " + path);
  if (own && status.st_uid != ::geteuid()) {
    return malformed(ErrorKind::access, path + " belongs to another user");
  }
  std::string text;
  std::array<char, 4096> buffer;
  for (;;) {
    const ssize_t got = ::read(file.get(), buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return fail(errno, "read " + path);
    text.append(buffer.data(), static_cast<std::size_t>(got));
    if (text.size() > longest_text) return malformed(ErrorKind::io, path + " is too long");
    // An entry gets its name when it is whole: to ask for more costs a request for nothing.
    if (got == 0 || static_cast<off_t>(text.size()) == status.st_size) {
      return std::optional(std::move(text));
    }
  }
}

Status remove_unfinished(const std::string& directory, const std::vector<std::string>& names) {
  std::error_code failure;
  for (std::filesystem::directory_iterator entry(directory, failure), end; !failure && entry != end;
       entry.increment(failure)) {
    const std::string found = entry->path().filename().string();
    const auto is_of = [&](const std::string& name) {
      const std::string begin = unfinished_name(name);
      return found.starts_with(begin) &&
             found.find_first_not_of("0123456789", begin.size()) == std::string::npos;
    };
    if (std::ranges::any_of(names, is_of) && ::unlink(entry->path().c_str()) != 0 &&
        errno != ENOENT) {
      return fail(errno, "remove " + entry->path().string());
    }
  }
  if (failure && failure != std::errc::no_such_file_or_directory) {
    return fail(failure.value(), "list " + directory);
  }
  return {};
}

Status remove_if_empty(const std::string& directory) {
  // Others may have something there still.
  if (::rmdir(directory.c_str()) != 0 && errno != ENOENT && errno != ENOTEMPTY && errno != EEXIST) {
    return fail(errno, "remove " + directory);
  }
  return {};
}

Status remove_entry(const std::string& directory, const std::string& name) {
  const std::string path = directory + "/" + name;
  if (::unlink(path.c_str()) != 0 && errno != ENOENT && errno != ENOTDIR) {
    return fail(errno, "remove " + path);
  }
  return remove_if_empty(directory);
}

Result<std::vector<std::string>> entries_that_end(const std::string& directory,
                                                  std::string_view ending) {
  std::error_code failure;
  std::vector<std::string> names;
  for (std::filesystem::directory_iterator entry(directory, failure), end; !failure && entry != end;
       entry.increment(failure)) {
    std::string name = entry->path().filename().string();
    if (!name.starts_with('.') && name.ends_with(ending)) names.push_back(std::move(name));
  }
  if (failure && failure != std::errc::no_such_file_or_directory) {
    return fail(failure.value(), "list " + directory);
  }
  std::ranges::sort(names);
  return names;
}

}  // namespace forebay
