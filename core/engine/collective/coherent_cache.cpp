#include "core/engine/collective/coherent_cache.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <utility>

#include "core/engine/cache/background_thread.hpp"
#include "core/engine/collective/cost_memory.hpp"
#include "core/engine/collective/scoped_nanoseconds.hpp"
#include "core/storage/forwarding_file.hpp"
#include "core/storage/piece_walk.hpp"

namespace forebay {
namespace {

/// Reasons why all ranks write to the file: bits of Claims::flags().
constexpr std::uint32_t while_atomic = 1;
constexpr std::uint32_t for_good = 2;

/// A granule that two ranks write in turn costs a flush each time. After so many of them in one
/// file, logs are of no use to it.
constexpr std::uint32_t most_conflicts = 16;

/// The file as a log's threads see it. Whoever made the log keeps the file. Where another handle of
/// the program puts back what lies in the gaps of its writes, it is kept away by a lock.
class Borrowed final : public ForwardingFile {
 public:
  Borrowed(StorageFile& file, const SieveWatch& watch) : ForwardingFile(file), watch_(watch) {}
  Status write_pieces(std::span<const iovec> pieces, Bytes offset) override {
    if (!watch_.another_sieves()) return ForwardingFile::write_pieces(pieces, offset);
    const Extent range{offset, total_bytes(pieces)};
    if (auto locked = lock(range, LockKind::exclusive); !locked) return locked;
    auto written = ForwardingFile::write_pieces(pieces, offset);
    auto unlocked = unlock(range);
    return written ? unlocked : written;
  }

 private:
  const SieveWatch& watch_;
};

/// What rank 0 tells of what it made for all.
struct Told {
  std::array<char, 64> memory{};
  std::array<char, 192> protection{};  ///< A name for it, unique for all time.
};

}  // namespace

std::unique_ptr<CoherentCache> CoherentCache::open(Exchange& exchange, StorageFile& file,
                                                   const SieveWatch& watch, const Hints& hints,
                                                   Bytes granule, Counters& counters,
                                                   std::vector<std::string>& notes) {
  if (!hints.cache.value_or(false)) return nullptr;
  if (!exchange.on_one_host()) {
    notes.emplace_back("no write-behind cache: the ranks are on several hosts");
    return nullptr;
  }
  Error failure;
  const auto fail = [&failure](const Error& error) {
    if (failure.kind == ErrorKind::none) failure = error;
  };
  auto place = CachePlace::find(exchange, file, hints);
  if (!place) fail(place.error());

  const Bytes claims_bytes = Claims::bytes(exchange.size());
  std::unique_ptr<SharedMemory> memory;
  Told told;
  if (exchange.rank() == 0) {
    if (auto made = SharedMemory::create(claims_bytes)) {
      memory = std::move(*made);
      memory->name().copy(told.memory.data(), told.memory.size() - 1);
    } else {
      fail(made.error());
    }
    new_log_name().copy(told.protection.data(), told.protection.size() - 1);
  }
  const std::span<const std::byte> word = std::as_bytes(std::span(&told, 1));
  const auto all = exchange.all_gather_varying(exchange.rank() == 0 ? word : word.first(0));
  std::memcpy(&told, all.front().data(), sizeof told);
  if (exchange.rank() != 0 && told.memory[0] != '\0') {
    if (auto attached = SharedMemory::attach(told.memory.data(), claims_bytes)) {
      memory = std::move(*attached);
    } else {
      fail(attached.error());
    }
  }
  std::int64_t failed = failure.kind != ErrorKind::none || memory == nullptr;
  exchange.all_reduce({&failed, 1}, Reduce::max);
  if (exchange.rank() == 0 && memory != nullptr) memory->unlink();
  if (failed != 0) {
    notes.push_back("no write-behind cache: " + (failure.kind == ErrorKind::none
                                                     ? "another rank has no place for its log"
                                                     : to_string(failure)));
    return nullptr;
  }
  Claims claims(memory->bytes(), exchange.size(), exchange.rank(), granule);
  std::string note;
  auto protection =
      LogProtection::make(exchange, file, hints.cache_redundancy.value_or(CacheRedundancy{}),
                          told.protection.data(), *place, counters, note);
  if (!note.empty()) notes.push_back(std::move(note));
  if (protection != nullptr) protection->delay(hints.delayed.value_or(false));
  return std::unique_ptr<CoherentCache>(new CoherentCache(
      file, watch, std::move(memory), std::move(*place), claims, std::move(protection), counters));
}

CoherentCache::CoherentCache(StorageFile& file, const SieveWatch& watch,
                             std::unique_ptr<SharedMemory> memory, CachePlace place, Claims claims,
                             std::unique_ptr<LogProtection> protection, Counters& counters)
    : file_(file),
      watch_(watch),
      memory_(std::move(memory)),
      place_(std::move(place)),
      counters_(counters),
      claims_(claims),
      protection_(std::move(protection)) {}

CoherentCache::~CoherentCache() {
  if (finishing_.joinable()) finishing_.join();
  if (!answering_.joinable()) return;
  claims_.close();
  answering_.join();
}

LogWriter* CoherentCache::log() const {
  CachedFile* const made = made_.load();
  return made == nullptr ? nullptr : &made->log();
}

/// This rank's log, made if it is not there yet.
Result<CachedFile*> CoherentCache::opened() {
  if (CachedFile* log = made_.load()) return log;
  const std::scoped_lock lock(opening_);
  if (CachedFile* log = made_.load()) return log;
  if (auto made = open_log(); !made) return tl::unexpected(made.error());
  return made_.load();
}

Status CoherentCache::open_log() {
  const auto identity = place_.identity_of(file_, new_log_name(), LogPurpose::data);
  if (!identity) return tl::unexpected(identity.error());
  auto store = LogDirectory::create(place_.directory, identity->log);
  if (!store) return tl::unexpected(store.error());
  auto opened = CachedFile::open(std::make_unique<Borrowed>(file_, watch_), std::move(*store),
                                 *identity, place_.capacity, place_.options);
  if (!opened) return tl::unexpected(opened.error());
  log_ = std::move(*opened);
  if (auto begun = log_->commit(epoch_); !begun) return begun;
  made_ = log_.get();
  // Before anything is claimed: whoever meets a claim finds somebody to ask.
  claims_.open(identity->process);
  answering_ = background_thread([this] {
    claims_.answer([this](const Claims::Question& question) { return answer(question); });
  });
  return {};
}

Status CoherentCache::write_pieces(std::span<const iovec> pieces, Bytes offset) {
  if (total_bytes(pieces) == 0) return {};
  for (;;) {
    if (auto followed = follow(); !followed) return followed;
    Attempt attempt = try_write(pieces, offset);
    if (attempt.failure.kind != ErrorKind::none) {
      auto changed = write_through(to_string(attempt.failure));
      if (!changed) return changed;
    }
    if (attempt.done) return attempt.written;
    if (!attempt.foreign) continue;
    const auto answer = ask(attempt.foreign->rank, {Claims::Wish::write, attempt.foreign->extent});
    if (!answer.status) return answer.status;
    if (answer.was_dirty && claims_.count_conflict() == most_conflicts) {
      auto changed = write_through("ranks write in turn into the same blocks of the file");
      if (!changed) return changed;
    }
  }
}

/// Where all ranks write to the file, so does this one before it writes anything more: who changed
/// that may not have come to ask it yet.
Status CoherentCache::follow() {
  const CachedFile* const log = made_.load();
  if (!through() || log == nullptr || log->writes_through()) return {};
  const std::unique_lock turn(turn_);
  return empty_log();
}

CoherentCache::Attempt CoherentCache::try_write(std::span<const iovec> pieces, Bytes offset) {
  const Extent extent{offset, total_bytes(pieces)};
  const std::shared_lock turn(turn_);
  if (through() || closed_) {
    if (auto foreign = claims_.foreign(extent)) return {.foreign = foreign};
    CachedFile* const log = closed_ ? nullptr : made_.load();
    if (log == nullptr) return {.done = true, .written = file_.write_pieces(pieces, offset)};
    if (!log->writes_through()) return {};
    return {.done = true, .written = log->write_pieces(pieces, offset)};
  }
  const auto log = opened();
  if (!log) return {.failure = log.error()};
  // Whoever changed to writing through before this rank had a log did not ask it to.
  if (through()) return {};
  if (auto foreign = claims_.claim(extent)) return {.foreign = foreign};
  unsettled_ = true;
  Attempt attempt{.done = true, .written = (*log)->write_pieces(pieces, offset)};
  claims_.raise_end(extent.end());
  if ((*log)->writes_through()) {
    attempt.failure = (*log)->state().reason;
  } else if (auto slow = place_.too_slow((*log)->pace())) {
    attempt.failure = std::move(*slow);
  }
  return attempt;
}

Result<Bytes> CoherentCache::read_pieces(std::span<const iovec> pieces, Bytes offset) {
  const Bytes length = total_bytes(pieces);
  for (Extent rest{offset, length}; rest.length > 0;) {
    const auto foreign = claims_.foreign(rest);
    if (!foreign) break;
    const auto answer = ask(foreign->rank, {Claims::Wish::read, foreign->extent});
    if (!answer.status) return tl::unexpected(answer.status.error());
    const Bytes next = std::min(foreign->extent.end(), rest.end());
    rest = {next, rest.end() - next};
  }
  Result<Bytes> got;
  {
    const std::shared_lock turn(turn_);
    CachedFile* const log = closed_ ? nullptr : made_.load();
    got = log != nullptr ? log->read_pieces(pieces, offset) : file_.read_pieces(pieces, offset);
  }
  if (!got || *got == length) return got;
  // Up to what others hold behind it, there are zeros.
  const Bytes end = std::min(claims_.end() - offset, length);
  if (end <= *got) return got;
  Bytes at = 0;
  for (const iovec& piece : pieces) {
    const auto size = static_cast<Bytes>(piece.iov_len);
    const Bytes first = std::clamp<Bytes>(*got - at, 0, size);
    const Bytes last = std::clamp<Bytes>(end - at, 0, size);
    std::memset(static_cast<char*>(piece.iov_base) + first, 0,
                static_cast<std::size_t>(last - first));
    at += size;
  }
  return end;
}

Result<Bytes> CoherentCache::size() {
  // In this order: what is flushed in between is in the file's size then.
  const Bytes end = claims_.end();
  const auto size = file_.size();
  if (!size) return size;
  return std::max(*size, end);
}

Status CoherentCache::resize(Bytes size) { return file_.resize(size); }

Status CoherentCache::allocate(Bytes size) { return file_.allocate(size); }

Status CoherentCache::sync() {
  const ScopedNanoseconds exposed(counters_.cache_exposed_ns);
  const std::shared_lock turn(turn_);
  CachedFile* const log = closed_ ? nullptr : made_.load();
  return log != nullptr ? log->sync() : file_.sync();
}

Status CoherentCache::commit(std::uint64_t next_epoch) {
  std::uint64_t epoch = epoch_;
  while (epoch < next_epoch && !epoch_.compare_exchange_weak(epoch, next_epoch)) {
  }
  const std::shared_lock turn(turn_);
  CachedFile* const log = closed_ ? nullptr : made_.load();
  return log != nullptr ? log->commit(std::max<std::uint64_t>(epoch_, log->epoch())) : Status{};
}

Status CoherentCache::settle() {
  const ScopedNanoseconds exposed(counters_.cache_exposed_ns);
  const std::unique_lock turn(turn_);
  return settle_log();
}

Status CoherentCache::settle_log() {
  auto emptied = empty_log();
  if (made_ == nullptr || closed_ || through()) return emptied;
  auto back = log_->set_write_through(false);
  return emptied ? back : emptied;
}

Status CoherentCache::set_atomic(bool atomic) {
  if (atomic) {
    claims_.set_flag(while_atomic);
    const ScopedNanoseconds exposed(counters_.cache_exposed_ns);
    const std::unique_lock turn(turn_);
    return empty_log();
  }
  claims_.clear_flag(while_atomic);
  const std::unique_lock turn(turn_);
  if (made_ == nullptr || closed_ || through()) return {};
  return log_->set_write_through(false);
}

Status CoherentCache::write_through(const std::string& reason) {
  claims_.set_flag(for_good);
  add_note("write-behind cache given up: " + reason);
  const Status status = ask_all_to_empty();
  const std::unique_lock turn(turn_);
  auto emptied = empty_log();
  return status ? emptied : status;
}

Status CoherentCache::ask_all_to_empty() {
  Status status;
  for (int rank = 0; rank < place_.ranks; ++rank) {
    if (rank == place_.rank) continue;
    const auto answer = ask(rank, {Claims::Wish::write_through, {}});
    if (status) status = answer.status;
  }
  return status;
}

/// Nothing is in the log, and writes go to the file. With turn_ held alone.
Status CoherentCache::empty_log() {
  if (made_ == nullptr || closed_) return {};
  auto emptied = log_->set_write_through(true);
  if (!emptied) return emptied;
  claims_.release_all();
  claims_.reset_end();
  unsettled_ = false;
  return {};
}

Claims::Answer CoherentCache::ask(int rank, const Claims::Question& question) {
  const ScopedNanoseconds exposed(counters_.cache_exposed_ns);
  const std::scoped_lock lock(asking_);
  auto answer = claims_.ask(rank, question);
  if (answer.status && question.wish == Claims::Wish::write) {
    auto raised = commit(answer.epoch + 1);
    if (!raised) answer.status = raised;
  }
  return answer;
}

/// What another rank asks for, on this rank's own thread for that.
Claims::Answer CoherentCache::answer(const Claims::Question& question) {
  const std::unique_lock turn(turn_);
  Claims::Answer answer{.status = {}, .epoch = epoch_};
  if (closed_) return answer;
  if (question.wish == Claims::Wish::write_through) {
    answer.status = empty_log();
    return answer;
  }
  if (question.wish == Claims::Wish::write && unsettled_) {
    // In the file is not enough: what this log still holds would be replayed over what the other
    // rank writes now, if that one's records are flushed for good and gone by then.
    answer.was_dirty = true;
    answer.status = settle_log();
    return answer;
  }
  answer.was_dirty = log_->dirty(question.extent);
  // A place that several granules share is told apart from none of them.
  answer.status =
      claims_.shares_places(claims_.end()) ? log_->drain() : log_->drain(question.extent);
  if (answer.status) claims_.release(question.extent);
  return answer;
}

Status CoherentCache::protect(Moment moment) {
  if (protection_ == nullptr) return {};
  if (moment == Moment::end) protection_->delay(false);
  // What has come to the file is told in a delay, too: else older bytes would be rebuilt.
  const bool in_file = moment == Moment::emptied ||
                       (moment == Moment::sync && place_.options.sync == SyncScope::file);
  if (protection_->delayed() && !in_file) return {};
  const bool done = (claims_.flags() & for_good) != 0;
  const auto outlook = protection_->look(log(), done);
  if (outlook.needless) {
    end_protection();
    return {};
  }
  const Status settled = outlook.crowded ? settle() : Status{};
  const Status agreed = protection_->agree(log(), moment == Moment::sync || in_file);
  if (agreed) return settled;
  add_note("no protection against the loss of nodes any more: " + to_string(agreed.error()));
  // Parity that says nothing of what is written from now on must not be found by a recovery.
  const Status removed = protection_->worst(protection_->end(log()));
  protection_.reset();
  if (removed) return settled;
  const Status through = write_through("parity cannot be removed: " + to_string(removed.error()));
  return settled ? through : settled;
}

Status CoherentCache::set_delayed(bool delayed) {
  if (protection_ == nullptr || protection_->delayed() == delayed) return {};
  if (!delayed) return protect(Moment::end);
  protection_->delay(true);
  return {};
}

/// As far as this rank is concerned.
void CoherentCache::end_protection() {
  if (protection_ == nullptr) return;
  // What stays takes storage. No notice names its logs any more, so nobody rebuilds them.
  (void)protection_->end(log());
  protection_.reset();
}

Status CoherentCache::close(bool discard) {
  const ScopedNanoseconds exposed(counters_.cache_exposed_ns);
  return close_log(discard);
}

Status CoherentCache::close_log(bool discard) {
  const std::unique_lock turn(turn_);
  if (made_ == nullptr || closed_) {
    end_protection();
    closed_ = true;  // No log is made any more.
    return {};
  }
  auto closed = discard ? log_->discard() : log_->close();
  count_progress();
  if (!closed) return closed;
  remember_pace(place_.file_system, place_.path, log_->pace());
  // What is not flushed ever is to be rebuilt.
  if (discard || place_.options.flush != CacheFlush::none) end_protection();
  claims_.release_all();
  claims_.reset_end();
  closed_ = true;
  return {};
}

Result<bool> CoherentCache::close_early() {
  if (place_.options.flush != CacheFlush::deferred) {
    auto closed = close_together();
    return closed ? Result<bool>(false) : tl::unexpected(closed.error());
  }
  if (auto safe = protect(Moment::end); !safe) return tl::unexpected(safe.error());
  const std::unique_lock turn(turn_);
  if (made_ != nullptr && !closed_) {
    count_progress();
    // What came to the file already may have been cut away since by somebody else.
    claims_.reset_end();
    claims_.raise_end(log_->dirty_end());
  }
  return true;  // Other ranks may have logs.
}

void CoherentCache::start_finishing() {
  if (made_ == nullptr) return;
  // Where other logs are rebuilt from this one, it stays until they are in the file too.
  finishing_ = background_thread([this, stays = protection_ != nullptr] {
    // Where each rank's writes reach its own end only, others would be kept away again.
    file_.lengthen(claims_.end());
    log_->start_draining();
    if (stays) {
      const std::unique_lock turn(turn_);
      finished_ = settle_log();
      return;
    }
    finished_ = close_log(false);
    // Nobody need ask this rank any more.
    if (finished_) claims_.close();
  });
}

/// No log and no parity goes before all that is protected with it is in the file.
Status CoherentCache::close_together() {
  if (protection_ == nullptr) return close(false);
  const bool stays = place_.options.flush == CacheFlush::none;
  Status mine;
  if (stays) mine = commit();
  if (!stays) mine = settle();
  if (stays && mine) mine = protect(Moment::end);
  if (protection_ != nullptr) mine = protection_->worst(mine);
  if (!mine) return mine;
  auto closed = close(false);
  // All is in the file. A rank whose log cannot be removed must not wait for the others next time.
  if (!stays) end_protection();
  return closed;
}

Status CoherentCache::finish() {
  Status mine;
  if (finishing_.joinable()) {
    const ScopedNanoseconds exposed(counters_.cache_exposed_ns);
    finishing_.join();
    mine = finished_;
  } else if (protection_ == nullptr) {
    mine = close(false);
  }
  const Status others = ask_all_to_empty();
  if (protection_ != nullptr && others) mine = close(false);
  return mine ? others : mine;
}

/// The log's part of the counters.
void CoherentCache::count_progress() {
  const CachedFile::State state = log_->state();
  counters_.cache_absorbed = state.progress.absorbed;
  counters_.cache_drained = state.progress.drained;
  counters_.cache_log_bytes = state.log_bytes;
}

void CoherentCache::add_note(std::string note) {
  const std::scoped_lock lock(notes_mutex_);
  notes_.push_back(std::move(note));
}

std::vector<std::string> CoherentCache::notes() const {
  const std::scoped_lock lock(notes_mutex_);
  return notes_;
}

}  // namespace forebay
