#include "core/engine/cache/log_summary.hpp"

#include <utility>

#include "core/engine/cache/begun_log.hpp"
#include "core/engine/cache/log_segment.hpp"

namespace forebay {

Result<std::optional<LogSummary>> summarise(const std::shared_ptr<CacheDirectory>& directory,
                                            const std::string& name, ReadDepth depth, int threads,
                                            const ScanProgress& progress) {
  const auto log = LogDirectory::open(directory, name, LogDirectory::Use::look);
  if (!log) {
    if (log.error().kind == ErrorKind::no_such_file) return std::nullopt;
    return tl::unexpected(log.error());
  }
  LogSummary summary;
  summary.name = name;
  summary.path = (*log)->path();
  summary.in_use = (*log)->in_use();
  if (auto status = StatusPage::read(**log)) summary.progress = *status;
  auto contents = read_log(**log, depth, progress, threads);
  if (!contents) {
    Error error = contents.error();
    if (error.kind == ErrorKind::no_such_file && has_segments(**log).value_or(false)) {
      // They have lost what was written to them.
      error = {ErrorKind::io, 0, "the superblocks of " + summary.path + " are all zeros"};
    }
    summary.only_begun = error.kind == ErrorKind::io && !summary.in_use && is_only_begun(**log);
    summary.readable = tl::unexpected(std::move(error));
    return summary;
  }
  summary.complete_bytes = contents->complete_bytes();
  summary.complete_records = contents->complete.size();
  summary.incomplete_bytes = contents->incomplete_bytes();
  summary.incomplete_records = contents->incomplete.size();
  contents->complete.clear();  // They hold the segments open.
  contents->incomplete.clear();
  summary.contents = std::move(*contents);
  return summary;
}

}  // namespace forebay
