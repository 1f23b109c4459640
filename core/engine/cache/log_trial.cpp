#include "core/engine/cache/log_trial.hpp"

#include <algorithm>
#include <utility>

namespace forebay {
namespace {

constexpr std::int64_t ms = 1'000'000;

/// What is given to a device of which nothing is known. Others may be asking the same of it.
constexpr Bytes look_bytes = 8 * KiB;
constexpr std::int64_t look_ns = 4 * ms;
/// The first part may have waited for its log to be made: so many slow ones in a row are a doubt.
constexpr int slow_needed = 2;
/// A device that is not slow in so much is not.
constexpr Bytes most_looked = 4 * MiB;
/// What a device is judged by, either of them, from when it is slow.
constexpr Bytes judged_bytes = 2 * MiB;
constexpr std::int64_t judged_ns = 128 * ms;

constexpr Bytes longest_write_to_file = 1 * MiB;
/// Of writing to the file: what is taken in at once, and all of it.
constexpr std::int64_t uncounted_ns = 100 * ms;
constexpr std::int64_t file_trial_ns = 400 * ms;
/// Where writes take less than this, because all is taken in at once, so much is made durable to
/// see how long that takes, until it is either.
constexpr Bytes synced_bytes = 1 * MiB;
constexpr std::int64_t least_synced_ns = 50 * ms;
constexpr Bytes most_synced = 8 * MiB;

}  // namespace

LogTrial::LogTrial(NanosecondClock clock) : clock_(std::move(clock)), next_sync_(synced_bytes) {}

LogTrial::Part LogTrial::begin(Bytes bytes, bool log_only) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return stage_ != Stage::look || under_way_ == 0; });
  Part part{Way::log, bytes, stage_ == Stage::look};
  if (stage_ == Stage::look) {
    part.bytes = std::min(bytes, look_bytes);
  } else if (stage_ != Stage::log && !log_only) {
    part = {Way::file, std::min(bytes, longest_write_to_file), stage_ == Stage::compare};
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
  (stage_ == Stage::look ? looked_.ns : file_ns_) += more;
}

void LogTrial::ended(const Part& part, bool done, bool waited) {
  if (!part.counts && done) return;
  const std::scoped_lock lock(mutex_);
  if (part.counts) {
    count_time();
    --under_way_;
  }
  if (!done) {
    // What the file does not take goes to the log. A log that is full says nothing of its device.
    if (part.way == Way::file || stage_ != Stage::lost) stage_ = Stage::log;
  } else if (stage_ == Stage::look) {
    looked_.bytes += part.bytes;
    looked_.waited = looked_.waited || waited;
    if (looked_.bytes >= look_bytes || looked_.ns >= look_ns) look(std::exchange(looked_, {}));
  } else if (stage_ == Stage::compare) {
    file_bytes_ += part.bytes;
    // Writes beside a sync wait for it, and say nothing.
    if (compared_.flushing_ns == 0 && !by_syncs_) count_file(part.bytes);
    compare();
  }
  changed_.notify_all();
}

/// Until it was written to for long enough.
void LogTrial::count_file(Bytes bytes) {
  if (counted_from_ns_ > 0) compared_.flushed += bytes;
  if (counted_from_ns_ == 0 && file_ns_ >= uncounted_ns) counted_from_ns_ = file_ns_;
  if (compared_.flushed == 0 || file_ns_ < file_trial_ns) return;
  compared_.flushing_ns = file_ns_ - counted_from_ns_;
}

void LogTrial::look(const Taken& taken) {
  fast_ += taken.bytes;
  slow_ = taken.is_slow() ? slow_ + 1 : 0;
  if (slow_ >= slow_needed) {
    stage_ = Stage::compare;
    fast_ = 0;
  } else if (!taken.waited || fast_ >= most_looked) {
    stage_ = Stage::log;
  }
}

bool LogTrial::takes_probe() {
  if (stage_ != Stage::compare) return false;
  const std::scoped_lock lock(mutex_);
  return stage_ == Stage::compare && !std::exchange(is_probed_, true);
}

/// What a device takes in at once for having been idle says nothing of it: so it counts from when
/// it is slow.
bool LogTrial::probed(Bytes bytes, std::int64_t ns, bool waited) {
  const std::scoped_lock lock(mutex_);
  if (stage_ != Stage::compare) return false;
  const bool slow = Taken{bytes, ns, waited}.is_slow();
  fast_ = slow ? 0 : fast_ + bytes;
  if (fast_ >= most_looked) {
    stage_ = Stage::log;
    return false;
  }
  if (slow || compared_.logged > 0) {
    compared_.logged += bytes;
    compared_.logging_ns += ns;
  }
  compare();
  return !log_is_seen();
}

void LogTrial::unprobed(bool failed) {
  const std::scoped_lock lock(mutex_);
  if (stage_ != Stage::compare) return;
  if (failed) stage_ = Stage::log;
  is_probed_ = log_is_seen();
}

bool LogTrial::log_is_seen() const {
  return compared_.logged >= judged_bytes || compared_.logging_ns >= judged_ns;
}

void LogTrial::compare() {
  if (!log_is_seen() || compared_.flushing_ns == 0) return;
  stage_ = is_slower(compared_) ? Stage::lost : Stage::log;
}

bool LogTrial::file_is_untold() const {
  return stage_ == Stage::compare && compared_.flushing_ns == 0 && file_bytes_ > 0;
}

bool LogTrial::wants_sync() const {
  if (stage_ != Stage::compare) return false;
  const std::scoped_lock lock(mutex_);
  // Only where nothing else is left to wait for, and writes will not tell: a sync makes the file
  // system idle afterwards.
  const bool writes_tell = !by_syncs_ && file_ns_ >= least_synced_ns;
  return file_is_untold() && log_is_seen() && !writes_tell && !is_syncing_ &&
         file_bytes_ >= next_sync_;
}

bool LogTrial::wants_last_sync() const {
  const std::scoped_lock lock(mutex_);
  return file_is_untold();
}

bool LogTrial::takes_sync() {
  const std::scoped_lock lock(mutex_);
  if (!file_is_untold() || is_syncing_) return false;
  by_syncs_ = true;
  is_syncing_ = true;
  next_sync_ = file_bytes_ + synced_bytes;
  compared_.flushed = file_bytes_;
  synced_from_ns_ = file_ns_;
  return true;
}

void LogTrial::synced(std::int64_t ns, bool done) {
  const std::scoped_lock lock(mutex_);
  is_syncing_ = false;
  if (!done || !file_is_untold()) return;
  // Now what was taken in at once counts, too.
  const std::int64_t all_ns = synced_from_ns_ + ns;
  file_ns_ = all_ns;
  if (all_ns < least_synced_ns && compared_.flushed < most_synced) return;
  compared_.flushing_ns = all_ns;
  compare();
}

std::optional<CachePace> LogTrial::lost() const {
  if (stage_ != Stage::lost) return std::nullopt;
  const std::scoped_lock lock(mutex_);
  return compared_;
}

}  // namespace forebay
