#include "core/intercept/posix/complaint.hpp"

#include <unistd.h>

#include <optional>

#include "core/storage/file_version.hpp"

namespace forebay::posix {
namespace {

std::optional<FileId> error_stream;

std::optional<FileId> now_there() {
  const auto version = version_of(STDERR_FILENO);
  return version ? std::optional(version->id) : std::nullopt;
}

}  // namespace

void know_error_stream() { error_stream = now_there(); }

void complain(const std::string& what) {
  if (!error_stream || now_there() != error_stream) return;
  const std::string line = "forebay: " + what + "\n";
  // Nobody can be told that it fails.
  (void)!::write(STDERR_FILENO, line.data(), line.size());
}

}  // namespace forebay::posix
