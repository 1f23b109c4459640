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
/// A single slow window may be a moment of something else: so many in a row are a doubt.
constexpr int slow_windows_needed = 2;
/// A device that is not slow in so much is not.
constexpr Bytes most_looked = 4 * MiB;
/// From the first slow window of the second look on, all that is judged. In larger parts: what a
/// call takes whatever its size is not held against a device that is given much at a time.
constexpr Bytes judged_part = 128 * KiB;
constexpr Bytes judged_bytes = 1 * MiB;
constexpr std::int64_t judged_ns = 64 * ms;

constexpr Bytes longest_write_to_file = 512 * KiB;
/// Of writing to the file: what is taken in at once, and all of it.
constexpr std::int64_t uncounted_ns = 100 * ms;
constexpr std::int64_t file_trial_ns = 250 * ms;

}  // namespace

LogTrial::Part LogTrial::begin(Bytes bytes, bool log_only) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return !is_looking() || under_way_ == 0; });
  Part part{Way::log, bytes, is_looking()};
  if (is_looking()) {
    part.bytes = std::min(bytes, stage_ == Stage::first_look ? look_bytes : judged_part);
  } else if (stage_ != Stage::log && !log_only) {
    part = {Way::file, std::min(bytes, longest_write_to_file), stage_ == Stage::file};
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
    // What the file does not take goes to the log. A log that is full says nothing of its device.
    if (part.way == Way::file || stage_ != Stage::lost) stage_ = Stage::log;
  } else if (part.way == Way::file && stage_ == Stage::file) {
    if (counted_from_ns_ > 0) compared_.flushed += part.bytes;
    if (counted_from_ns_ == 0 && file_ns_ >= uncounted_ns) counted_from_ns_ = file_ns_;
    if (compared_.flushed > 0 && file_ns_ >= file_trial_ns) judge_file();
  } else if (part.way == Way::log && is_looking()) {
    window_.logged += part.bytes;
    waited_ = waited_ || waited;
    if (window_.logged >= window_bytes || window_.logging_ns >= window_ns) look();
  }
  changed_.notify_all();
}

/// A window of the log is full. What a device takes in at once for having been idle says nothing of
/// it: so only slow windows are judged, or what follows one.
void LogTrial::look() {
  const CachePace window = std::exchange(window_, {});
  const bool waited = std::exchange(waited_, false);
  looked_ += window.logged;
  const bool slow = waited && is_device_slow(window.logged, window.logging_ns);
  if (stage_ == Stage::first_look) {
    slow_windows_ = slow ? slow_windows_ + 1 : 0;
    compared_ = slow_windows_ > 1 ? compared_ : CachePace{};
    compared_ += window;
    if (slow_windows_ >= slow_windows_needed) {
      stage_ = Stage::file;
      looked_ = 0;
    } else if (!waited || looked_ >= most_looked) {
      stage_ = Stage::log;
    }
    return;
  }
  const bool is_judged = slow || compared_.logged > 0;
  if (is_judged) compared_ += window;
  if (compared_.logged >= judged_bytes || compared_.logging_ns >= judged_ns) {
    stage_ = is_slower(compared_) ? Stage::lost : Stage::log;
  } else if (!is_judged && looked_ >= most_looked) {
    stage_ = Stage::log;
  }
}

void LogTrial::judge_file() {
  compared_.flushing_ns = file_ns_ - counted_from_ns_;
  stage_ = is_slower(compared_) ? Stage::second_look : Stage::log;
  compared_.logged = compared_.logging_ns = 0;
}

std::optional<CachePace> LogTrial::lost() const {
  if (stage_ != Stage::lost) return std::nullopt;
  const std::scoped_lock lock(mutex_);
  return compared_;
}

}  // namespace forebay
