#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>

#include "core/engine/cache/log_contents.hpp"
#include "core/engine/cache/log_directory.hpp"
#include "core/engine/cache/status_page.hpp"
#include "core/model/error.hpp"

namespace forebay {

/// What a log in a CacheDirectory is, for who looks at it from outside. It holds no file open.
struct LogSummary {
  std::string name;
  std::string path;
  bool in_use = false;      ///< A running process writes it: all else may change at any moment.
  Status readable;          ///< no_such_file: it holds nothing, or nothing yet, not even zeros.
  bool only_begun = false;  ///< It cannot be read, and nothing of it was ever durable.
  LogContents contents;     ///< Without its entries, where the log is readable.
  Bytes complete_bytes = 0;
  std::size_t complete_records = 0;
  Bytes incomplete_bytes = 0;
  std::size_t incomplete_records = 0;
  std::optional<CacheProgress> progress;  ///< Of its writer, if it left any.
};

/// Looks at the log `name`, by up to `threads` threads. It may go away meanwhile, hence the
/// optional. Errors: access, io, ...
Result<std::optional<LogSummary>> summarise(const std::shared_ptr<CacheDirectory>& directory,
                                            const std::string& name, ReadDepth depth, int threads,
                                            const ScanProgress& progress = {});

}  // namespace forebay
