#include "core/engine/cache/log_trial.hpp"

#include <algorithm>
#include <utility>

namespace forebay {
namespace {

constexpr std::int64_t ms = 1'000'000;

/// What is given to a device of which nothing is known, and how much of it is a window.
constexpr Bytes look_bytes = 32 * KiB;
constexpr Bytes window_bytes = 128 * KiB;
constexpr std::int64_t window_ns = 16 * ms;
/// A single slow window may be a moment of something else.
constexpr int most_slow_windows = 2;
/// A device that is not slow in so much is not.
constexpr Bytes most_looked = 4 * MiB;
/// Of the file.
constexpr Bytes longest_write = 512 * KiB;
constexpr std::int64_t uncounted_ns = 100 * ms;
constexpr std::int64_t file_trial_ns = 250 * ms;

}  // namespace

LogTrial::Part LogTrial::begin(Bytes bytes, bool log_only) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return !is_looking() || under_way_ == 0; });
  Part part{Way::log, bytes, is_looking()};
  if (is_looking()) {
    part.bytes = std::min(bytes, look_bytes);
  } else if (stage_ != Stage::log && !log_only) {
    part = {Way::file, std::min(bytes, longest_write), stage_ == Stage::file};
  }
  if (part.counts) {
    count_time();
    ++under_way_;
  }
  return part;
}

/// The time since it was counted last is that of who is under way.
void LogTrial::count_time() {
  const std::int64_t now = clock_();
  const std::int64_t more = under_way_ > 0 ? now - since_ : 0;
  since_ = now;
  (stage_ == Stage::file ? file_ns_ : window_.logging_ns) += more;
}

void LogTrial::ended(const Part& part, bool done, bool waited) {
  if (!part.counts && done) return;
  const std::scoped_lock lock(mutex_);
  if (part.counts) {
    count_time();
    --under_way_;
    // The last ones to the file end when that was judged already.
    if (part.way == Way::file && is_looking()) window_ = {};
  }
  if (!done) {
    stage_ = Stage::log;
  } else if (part.way == Way::file && stage_ == Stage::file) {
    if (file_ns_ > uncounted_ns) compared_.flushed += part.bytes;
    if (file_ns_ >= file_trial_ns) judge_file();
  } else if (part.way == Way::log && is_looking()) {
    window_.logged += part.bytes;
    waited_ = waited_ || waited;
    if (window_.logged >= window_bytes || window_.logging_ns >= window_ns) look();
  }
  changed_.notify_all();
}

/// A window of the log is full.
void LogTrial::look() {
  const CachePace window = std::exchange(window_, {});
  const bool waited = std::exchange(waited_, false);
  looked_ += window.logged;
  const bool slow = waited && is_device_slow(window.logged, window.logging_ns);
  slow_windows_ = slow ? slow_windows_ + 1 : 0;
  if (slow_windows_ <= 1) compared_.logged = compared_.logging_ns = 0;
  if (slow) compared_ += window;
  const bool is_first = stage_ == Stage::first_look;
  if (slow_windows_ < most_slow_windows) {
    // What a device takes in at once for having been idle says nothing of it.
    if ((is_first && !waited) || looked_ >= most_looked) stage_ = Stage::log;
    return;
  }
  if (is_first) {
    stage_ = Stage::file;
  } else {
    stage_ = is_slower(compared_) ? Stage::lost : Stage::log;
  }
  looked_ = 0;
  slow_windows_ = 0;
}

void LogTrial::judge_file() {
  compared_.flushing_ns = file_ns_ - uncounted_ns;
  stage_ = is_slower(compared_) ? Stage::second_look : Stage::log;
}

std::optional<CachePace> LogTrial::lost() const {
  if (stage_ != Stage::lost) return std::nullopt;
  const std::scoped_lock lock(mutex_);
  return compared_;
}

}  // namespace forebay
