#pragma once

#include <cstdint>
#include <string>

namespace forebay {

/// Logs that programs left which have ended, as far as can be told from here, or that another job
/// on this node still writes, hold bytes that the file at `path` lacks: what there is to tell of
/// that; empty if there are none. Logs of another node count unless this very job has them, they
/// were begun when this program ran, since `started_unix_s`, and nobody said that he let go of
/// them: a job may have started a program before this one, a job that is queued again keeps its
/// number, and this program may have closed the file in vain. To be called by one rank when the
/// file was opened, before any rank writes to it: where it is going to be written, the logs are
/// marked as older than that.
std::string warn_of_left_logs(const std::string& path, bool writing, std::int64_t started_unix_s);

}  // namespace forebay
