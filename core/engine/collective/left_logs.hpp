#pragma once

#include <cstdint>
#include <string>

namespace forebay {

/// Logs that programs left which have ended, as far as can be told from here, or that another job
/// on this node still writes, hold bytes that the file at `path` lacks: what there is to tell of
/// that; empty if there are none. Logs of another node count unless this very job has them and they
/// were begun when this program ran, since `started_unix_s`: a job may have started a program
/// before this one, and a job that is queued again keeps its number. To be called by one rank when
/// the file was opened, before any rank writes to it: where it is going to be written, the logs are
/// marked as older than that.
std::string warn_of_left_logs(const std::string& path, bool writing, std::int64_t started_unix_s);

}  // namespace forebay
