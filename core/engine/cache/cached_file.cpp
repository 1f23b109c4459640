#include "core/engine/cache/cached_file.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include "core/engine/cache/merged_read.hpp"
#include "core/engine/cache/overtaken_logs.hpp"
#include "core/engine/cache/piece_slice.hpp"
#include "core/storage/background_thread.hpp"
#include "core/storage/piece_walk.hpp"
#include "core/storage/thread_waits.hpp"

namespace forebay {
namespace {

constexpr Bytes usual_payload = 256 * KiB;
constexpr int most_flush_threads = 16;
/// Each takes a file descriptor. So many of the largest; a log that grows to them has up to some
/// fifty that are smaller.
constexpr Bytes most_segments = 64;
constexpr Bytes least_segments = 8;
constexpr Bytes smallest_usual_segment = 32 * MiB;
constexpr Bytes largest_usual_segment = 1 * GiB;

CacheOptions completed(CacheOptions options, const StripeLayout& layout, Bytes capacity) {
  if (options.log.segment_bytes <= 0) {
    options.log.segment_bytes =
        std::clamp(capacity / most_segments, smallest_usual_segment, largest_usual_segment);
  }
  // While one segment is being flushed, others are filled.
  options.log.segment_bytes = std::min(options.log.segment_bytes, capacity / least_segments);
  if (options.log.payload_bytes <= 0) {
    options.log.payload_bytes = layout.stripe_size > 0 ? layout.stripe_size : usual_payload;
  }
  if (options.flush_threads <= 0) {
    options.flush_threads = std::clamp(2 * layout.servers, 2, most_flush_threads);
  }
  return options;
}

/// A part of a trial, which ends whatever happens.
struct OpenPart {
  LogTrial& trial;
  LogTrial::Part part;
  bool done = false;
  bool waited = false;

  OpenPart(LogTrial& of, Bytes bytes, bool log_only) : trial(of), part(of.begin(bytes, log_only)) {}
  ~OpenPart() { trial.ended(part, done, waited); }
  OpenPart(const OpenPart&) = delete;
  OpenPart& operator=(const OpenPart&) = delete;
};

}  // namespace

Result<std::unique_ptr<CachedFile>> CachedFile::open(std::unique_ptr<StorageFile> file,
                                                     std::unique_ptr<LogStore> store,
                                                     const LogIdentity& identity,
                                                     const std::shared_ptr<Resource>& capacity,
                                                     const CacheOptions& options) {
  auto holder = ResourceHolder::join(capacity);
  if (!holder) return tl::unexpected(holder.error());
  const CacheOptions complete = completed(options, file->layout(), capacity->amount());
  std::unique_ptr<CachedFile> cached(
      new CachedFile(std::move(file), std::move(store), identity, std::move(*holder), complete));
  if (const Status begun = cached->flusher_.begun(); !begun) {
    (void)cached->discard();
    return tl::unexpected(begun.error());
  }
  return cached;
}

CachedFile::CachedFile(std::unique_ptr<StorageFile> file, std::unique_ptr<LogStore> store,
                       const LogIdentity& identity, std::unique_ptr<ResourceHolder> capacity,
                       const CacheOptions& options)
    : options_(options),
      file_(std::move(file)),
      trial_(options_.trial),
      store_(*store),
      sidecar_(identity.file.path),
      status_(*store),
      extents_({file_->layout(), options_.flush_bytes, options_.first_server}, background_policy(),
               options_.lull, options_.longest_burst),
      log_(std::move(store), identity, options_.log, std::move(capacity),
           [this](const LogRecord& record, const LogPlace& place) {
             extents_.add(record.extent(), record.sequence, place);
           }),
      flusher_(extents_, *file_, options_.flush_threads,
               {.wrote = [this](Extent) { publish(false); },
                .idle =
                    [this] {
                      yield_capacity();
                      publish(false);
                    }}) {
  log_.prepare();
  publish(true);
}

CachedFile::~CachedFile() {
  if (last_sync_.joinable()) last_sync_.join();
  // Else who goes on in this job, on another node, would take it for a log that is being written.
  if (announced_ && options_.announce) (void)sidecar_.announce(notice(true), relies_on_notice());
}

bool CachedFile::background_policy() const {
  return options_.flush == CacheFlush::immediate || options_.flush == CacheFlush::deferred;
}

Error CachedFile::kept_in_log(Error error) const {
  error.what = "flush " + path() + " from the write-behind log " + log_.path() +
               ", which keeps what is missing: " + error.what;
  return error;
}

Status CachedFile::write_pieces(std::span<const iovec> pieces, Bytes offset) {
  if (const auto failure = extents_.take_failure()) {
    return tl::unexpected(kept_in_log(*failure));
  }
  if (auto lost = take_lost(); !lost) return lost;
  const Bytes length = total_bytes(pieces);
  if (length == 0) return {};
  std::vector<iovec> rest;
  for (Bytes done = 0;;) {
    LogWriter::Outcome outcome;
    {
      const std::shared_lock call(calls_);
      if (write_through_) return write_through_locked(pieces, offset + done);
      outcome.status = announce();
      if (outcome.status) outcome = take_in(pieces, offset + done);
    }
    done += outcome.logged;
    if (done == length) return {};
    rest = slice(pieces, outcome.logged, length);
    pieces = rest;
    if (outcome.full) {
      const auto missing = make_room();
      if (!missing) return tl::unexpected(kept_in_log(missing.error()));
      if (!*missing) continue;
      outcome.status = tl::unexpected(**missing);
    }
    if (auto degraded = degrade(outcome.status.error()); !degraded) return degraded;
  }
}

/// To the log; as long as that may be slower than the file, to both. What goes to the file counts
/// as logged, too.
LogWriter::Outcome CachedFile::take_in(std::span<const iovec> pieces, Bytes offset) {
  if (trial_ == nullptr || trial_->is_over()) return append(pieces, offset);
  const Bytes length = total_bytes(pieces);
  LogWriter::Outcome outcome;
  while (outcome.logged < length && outcome.status && !outcome.full) {
    const Bytes left = length - outcome.logged;
    const Bytes at = offset + outcome.logged;
    LogWriter::Outcome taken;
    if (trial_->takes_probe()) {
      const std::scoped_lock lock(probe_mutex_);
      probe_ = LogProbe::start(store_, trial_);
    }
    {
      OpenPart open(*trial_, left, was_given({at, left}));
      const auto written = slice(pieces, outcome.logged, open.part.bytes);
      const long waits = waits_of_thread();
      if (open.part.way == LogTrial::Way::log) {
        give({at, open.part.bytes});
        taken = append(written, at);
      } else if (file_->write_pieces(written, at)) {
        taken.logged = open.part.bytes;
        written_directly_ = true;
      }
      // What the file did not take goes to the log; it fails again when that is flushed, and is
      // told then.
      open.done = taken.logged == open.part.bytes;
      open.waited = waits_of_thread() != waits;
    }
    if (trial_->wants_sync()) make_durable_or_lose();
    taken.logged += outcome.logged;
    outcome = std::move(taken);
  }
  return outcome;
}

void CachedFile::end_writing() {
  ended_writing_ = true;
  update_background();
  if (trial_ == nullptr || !trial_->wants_last_sync()) return;
  const std::unique_lock call(calls_);
  if (last_sync_.joinable()) return;
  // Where there is no thread the next file will tell.
  auto thread = try_background_thread([this] { make_durable_or_lose(); });
  if (thread) last_sync_ = std::move(*thread);
}

/// The file alone, with sync_mutex_ held. As long as it is compared with the log, the trial hears.
Status CachedFile::sync_file() {
  const bool direct = written_directly_.exchange(false);
  const bool is_timed = trial_ != nullptr && trial_->takes_sync();
  const std::int64_t since = is_timed ? trial_->now_ns() : 0;
  auto synced = file_->sync();
  if (is_timed) trial_->synced(trial_->now_ns() - since, synced.has_value());
  if (!synced && direct) written_directly_ = true;
  return synced;
}

/// Whether a record of the log may be of `extent`. It could be replayed over what is written to the
/// file, long after it was flushed: where what lay over it is dropped, or until the log says so.
bool CachedFile::was_given(Extent extent) {
  const std::scoped_lock lock(given_mutex_);
  return all_given_ || given_.overlap(extent) > 0;
}

void CachedFile::give(Extent extent) {
  const std::scoped_lock lock(given_mutex_);
  given_.add(extent);
  all_given_ = all_given_ || given_.overlap(extent) < extent.length;
}

LogWriter::Outcome CachedFile::append(std::span<const iovec> pieces, Bytes offset) {
  LogWriter::Outcome outcome;
  {
    const BusyTime::Worker logging(logging_);
    outcome = log_.append(pieces, offset, epoch_);
  }
  if (outcome.logged > 0) uncommitted_ = true;
  logged_ += outcome.logged;
  return outcome;
}

/// Writes to the file what would else go to the log.
Status CachedFile::write_through_locked(std::span<const iovec> pieces, Bytes offset) {
  if (auto emptied = make_way(); !emptied) return emptied;
  auto written = file_->write_pieces(pieces, offset);
  written_directly_ = true;  // Not before: threads make the file durable meanwhile.
  return written;
}

/// Nothing in the log may be replayed over what the file gets past it. With calls_ held.
Status CachedFile::make_way() {
  if (log_empty()) return {};
  auto emptied = empty_log();
  return emptied ? emptied : tl::unexpected(kept_in_log(emptied.error()));
}

Result<Bytes> CachedFile::read_pieces(std::span<const iovec> pieces, Bytes offset) {
  return read_merged(*file_, extents_, kept_, pieces, offset);
}

Result<Bytes> CachedFile::size() {
  // In this order: what is flushed in between is in the file's size then.
  const Bytes dirty = extents_.end();
  const auto size = file_->size();
  if (!size) return size;
  return std::max(*size, dirty);
}

Status CachedFile::allocate(Bytes size) {
  const std::unique_lock call(calls_);
  // Where a file system cannot allocate, it is done by rewriting what is there.
  const DirtyExtents::Pause pause(extents_);
  auto allocated = file_->allocate(size);
  written_directly_ = true;
  return allocated;
}

Status CachedFile::resize(Bytes size) {
  const std::unique_lock call(calls_);
  if (auto committed = commit_locked(epoch_); !committed) return committed;
  if (auto emptied = make_way(); !emptied) return emptied;
  auto resized = file_->resize(size);
  written_directly_ = true;
  return resized;
}

Status CachedFile::commit(std::uint64_t next_epoch) {
  const std::unique_lock call(calls_);
  return commit_locked(next_epoch);
}

Status CachedFile::commit_locked(std::uint64_t next_epoch) {
  const std::uint64_t epoch = epoch_;
  epoch_ = std::max(next_epoch, epoch);
  if (!uncommitted_.exchange(false)) return {};
  const auto sequence = log_.commit(epoch);
  if (sequence) {
    extents_.commit(*sequence);
    publish(false);
    return {};
  }
  return degrade_locked(sequence.error());
}

Status CachedFile::drain() {
  auto drained = extents_.drain(extents_.last_order());
  return drained ? drained : tl::unexpected(kept_in_log(drained.error()));
}

Status CachedFile::drain(Extent extent) {
  auto drained = extents_.drain(extent);
  return drained ? drained : tl::unexpected(kept_in_log(drained.error()));
}

Status CachedFile::sync() {
  const std::unique_lock call(calls_);
  return sync_locked();
}

Status CachedFile::sync_locked() {
  if (auto committed = commit_locked(epoch_); !committed) return committed;
  if (syncs_to_node() && !write_through_) {
    if (const Status durable = log_.sync(); !durable) return degrade_locked(durable.error());
    if (options_.flush == CacheFlush::onsync) extents_.begin_drain(extents_.last_order());
    const std::scoped_lock lock(sync_mutex_);  // A thread may be about to make it durable.
    const Status synced = written_directly_ ? sync_file() : Status{};
    return synced ? take_lost() : synced;
  }
  auto settled = settle();
  return settled ? settled : tl::unexpected(kept_in_log(settled.error()));
}

void CachedFile::start_draining() {
  const std::unique_lock call(calls_);
  // A commit that fails drains by itself.
  (void)commit_locked(epoch_);
  draining_ = options_.flush != CacheFlush::none;
  if (draining_) {
    file_->lengthen(extents_.end());
    update_background();
  }
  publish(true);
}

Status CachedFile::close() {
  const std::unique_lock call(calls_);
  if (options_.flush == CacheFlush::none) {
    auto synced = sync_locked();
    publish(true);  // The log stays, and with it what it says of itself.
    return synced;
  }
  if (auto committed = commit_locked(epoch_); !committed) return committed;
  if (auto settled = settle(); !settled) return tl::unexpected(kept_in_log(settled.error()));
  if (!options_.keep_log) return remove_log();
  replayable_ = replayable_ || !log_empty();
  return replayable_ ? leave_log(log_.failure()) : Status{};
}

Status CachedFile::discard() {
  const std::unique_lock call(calls_);
  {
    const DirtyExtents::Pause pause(extents_);
    extents_.discard();
  }
  uncommitted_ = false;
  write_through_ = true;
  announced_ = false;
  auto destroyed = destroy_log();
  auto withdrawn = sidecar_.withdraw(log_.identity().log);
  return destroyed ? withdrawn : destroyed;
}

Status CachedFile::set_write_through(bool write_through) {
  const std::unique_lock call(calls_);
  if (!write_through) {
    const std::scoped_lock lock(reason_mutex_);
    if (log_.broken()) {
      return tl::unexpected(
          Error{ErrorKind::io, 0, "the write-behind log " + log_.path() + " takes no more"});
    }
    reason_ = {};
    write_through_ = false;
    return {};
  }
  if (auto committed = commit_locked(epoch_); !committed) return committed;
  write_through_ = true;
  auto emptied = empty_log();
  return emptied ? emptied : tl::unexpected(kept_in_log(emptied.error()));
}

CachedFile::State CachedFile::state() const {
  State state;
  {
    const std::scoped_lock lock(reason_mutex_);
    state.reason = reason_;
    state.left = left_;
  }
  state.progress = progress();
  state.write_through = write_through_;
  state.log_bytes = log_.bytes();
  state.crowded_ns = crowded_.nanoseconds();
  state.log_path = log_.path();
  return state;
}

CachePace CachedFile::pace() const {
  const auto totals = extents_.totals();
  return {logged_, logging_.nanoseconds(), totals.pressed, totals.pressed_ns};
}

DirtyNotice CachedFile::notice(bool is_left) const {
  const LogIdentity& identity = log_.identity();
  const auto now = std::chrono::duration_cast<std::chrono::seconds>(
      std::chrono::system_clock::now().time_since_epoch());
  return {.file = identity.file,
          .log = identity.log,
          .log_path = log_.path(),
          .host = identity.host,
          .job = identity.job,
          .process = identity.process,
          .rank = identity.rank,
          .since_unix_s = now.count(),
          .is_protected = options_.is_protected,
          .flushed = log_.flushed_sequence(),
          .is_left = is_left};
}

Status CachedFile::announce() {
  if (announced_) return {};
  const std::scoped_lock lock(announce_mutex_);
  if (announced_) return {};
  if (options_.announce) {
    auto announced = sidecar_.announce(notice(false), relies_on_notice());
    if (!announced) return announced;
  }
  announced_ = true;
  return {};
}

/// Nothing of the log is replayed any more. A notice that stays is a false alarm, until the next
/// one takes its place.
void CachedFile::withdraw_notice() {
  if (announced_.exchange(false) && options_.announce) {
    (void)sidecar_.withdraw(log_.identity().log);
  }
}

/// Waits until the log may take more. A value: why it will not. Errors: what it holds could not be
/// brought to the file.
Result<std::optional<Error>> CachedFile::make_room() {
  const BusyTime::Worker crowded(crowded_);
  const std::scoped_lock lock(room_mutex_);
  const auto oldest = log_.oldest_segment_end();
  if (!oldest) {
    const auto there = log_.wait_for_capacity(options_.patience);
    if (!there) return std::optional(there.error());
    if (*there) return std::nullopt;
    return std::optional(
        Error{ErrorKind::no_space, 0, "others hold the capacity of the cache at " + log_.path()});
  }
  if (auto drained = extents_.drain(*oldest); !drained) return tl::unexpected(drained.error());
  if (auto durable = make_durable(); !durable) return tl::unexpected(durable.error());
  if (log_.oldest_segment_end() != oldest) return std::nullopt;
  // What lies over its records is not committed, and has to go to the file with them.
  if (auto drained = extents_.drain(extents_.last_order()); !drained) {
    return tl::unexpected(drained.error());
  }
  if (auto durable = make_durable(); !durable) return tl::unexpected(durable.error());
  return std::nullopt;
}

/// The log cannot take what is being written: from now on it goes to the file.
Status CachedFile::degrade(const Error& reason) {
  const BusyTime::Worker crowded(crowded_);
  const std::unique_lock call(calls_);
  return degrade_locked(reason);
}

/// What the log cannot promise is brought to the file. With calls_ held.
Status CachedFile::degrade_locked(const Error& reason) {
  {
    const std::scoped_lock lock(reason_mutex_);
    if (reason_.kind == ErrorKind::none) reason_ = reason;
  }
  write_through_ = true;
  auto emptied = empty_log();
  return emptied ? emptied : tl::unexpected(kept_in_log(emptied.error()));
}

/// What the threads wrote is durable, and the log says so.
Status CachedFile::make_durable() {
  const std::scoped_lock lock(sync_mutex_);
  return make_durable_locked();
}

Status CachedFile::make_durable_locked() {
  const std::uint64_t through = extents_.begin_sync();
  auto synced = sync_file();
  extents_.end_sync(synced.has_value());
  if (!synced) return synced;
  // If this fails, the log is broken, and is removed when something is to be written. Until then
  // its notice stays.
  (void)log_.flushed(epoch_, through);
  return {};
}

/// What could not be made durable in the background and is in no log. Once.
Status CachedFile::take_lost() {
  const std::scoped_lock lock(reason_mutex_);
  const auto lost = std::exchange(lost_, std::nullopt);
  return lost ? tl::unexpected(*lost) : Status{};
}

/// All is in the file, durably. With calls_ held, so that nothing new comes meanwhile.
Status CachedFile::settle() {
  file_->lengthen(extents_.end());
  // A thread that makes the file durable as we come may fail to: what it lost is dirty again then.
  for (;;) {
    if (auto drained = extents_.drain(extents_.last_order()); !drained) return drained;
    const std::scoped_lock lock(sync_mutex_);
    if (extents_.totals().dirty > 0) continue;
    if (auto durable = make_durable_locked(); !durable) return durable;
    break;
  }
  if (auto lost = take_lost(); !lost) return lost;
  publish(true);
  if (log_empty()) withdraw_notice();
  return {};
}

/// Nothing that is in the log will ever be replayed. With calls_ held.
Status CachedFile::empty_log() {
  if (auto settled = settle(); !settled) return settled;
  return log_empty() ? Status{} : remove_log();
}

Status CachedFile::destroy_log() {
  {
    const std::scoped_lock lock(probe_mutex_);
    probe_.reset();
  }
  return log_.destroy();
}

/// All it held is durable in the file.
Status CachedFile::remove_log() {
  replayable_ = replayable_ || !log_empty();
  const Status destroyed = destroy_log();
  if (!destroyed) return leave_log(destroyed.error());
  withdraw_notice();
  return {};
}

/// It is not removed, for that `reason`, and all it held is durable in the file. So nothing of it
/// is to be replayed: the log says so itself, or else a mark beside the file.
Status CachedFile::leave_log(const Error& reason) {
  if (replayable_) {
    const std::string& name = log_.identity().log;
    announced_ = false;  // The notice is to say up to where all is in the file.
    auto marked = announce();
    if (marked) marked = mark_overtaken(sidecar_, name, {name});
    // The mark holds as long as the notice is there: it stays. Without one it is to say in the end
    // that the log is left.
    announced_ = !marked;
    if (!marked) return tl::unexpected(reason);
    replayable_ = false;
  }
  const std::scoped_lock lock(reason_mutex_);
  left_ = reason;
  return {};
}

/// Whether what is committed is flushed though nobody waits for it.
void CachedFile::update_background() {
  const std::scoped_lock lock(background_mutex_);
  const bool by_policy = background_policy() && !ended_writing_;
  extents_.set_background(by_policy || draining_);
}

/// Lets others have capacity that they wait for, which this log holds.
void CachedFile::yield_capacity() {
  if (options_.flush == CacheFlush::none || !log_.capacity_wanted_by_others()) return;
  extents_.begin_drain(extents_.last_order());
  log_.trim();
  make_durable_or_lose();
}

/// What the log holds is tried again by the next one who needs the file to be durable; what only
/// the file was given may be lost then, and that is told once.
void CachedFile::make_durable_or_lose() {
  // Before anybody else makes the file durable, which would not fail again.
  const std::scoped_lock lock(sync_mutex_);
  const Status durable = make_durable_locked();
  if (durable || !written_directly_) return;
  const std::scoped_lock reason_lock(reason_mutex_);
  lost_ = durable.error();
}

CacheProgress CachedFile::progress() const {
  const auto totals = extents_.totals();
  return {.absorbed = totals.added,
          .drained = totals.written,
          .dirty = totals.dirty,
          .draining = draining_};
}

}  // namespace forebay
