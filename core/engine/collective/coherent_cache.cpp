#include "core/engine/collective/coherent_cache.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <utility>

#include "core/engine/collective/cost_memory.hpp"
#include "core/engine/collective/scoped_nanoseconds.hpp"
#include "core/storage/background_thread.hpp"
#include "core/storage/forwarding_file.hpp"
#include "core/storage/piece_walk.hpp"

namespace forebay {
namespace {

/// Reasons why all ranks write to the file: bits of Claims::flags().
constexpr std::uint32_t while_atomic = 1;
constexpr std::uint32_t for_good = 2;
/// And all logs have been emptied since.
constexpr std::uint32_t nothing_held = 4;

/// A granule that two ranks write in turn costs a flush each time. After so many of them in one
/// file, logs are of no use to it.
constexpr std::uint32_t most_conflicts = 16;

/// The file as a log's threads see it. Whoever made the log keeps the file. No handle puts old
/// bytes back into the gaps of its writes meanwhile: where a process has another one, nothing is
/// held back.
class Borrowed final : public ForwardingFile {
 public:
  explicit Borrowed(StorageFile& file) : ForwardingFile(file) {}
};

}  // namespace

std::unique_ptr<CoherentCache> CoherentCache::open(Exchange& exchange, StorageFile& file,
                                                   const Hints& hints, Bytes granule,
                                                   Counters& counters,
                                                   std::vector<std::string>& notes,
                                                   std::shared_ptr<FileHandles> handles) {
  if (!hints.cache.value_or(false)) return nullptr;
  return open_at(exchange, file, CachePlace::find(exchange, file, hints), hints, granule, counters,
                 notes, std::move(handles));
}

std::unique_ptr<CoherentCache> CoherentCache::open_at(Exchange& exchange, StorageFile& file,
                                                      Result<CachePlace> place, const Hints& hints,
                                                      Bytes granule, Counters& counters,
                                                      std::vector<std::string>& notes,
                                                      std::shared_ptr<FileHandles> handles) {
  auto claims = open_claims(exchange, granule, place ? Error{} : place.error());
  if (!claims) {
    notes.push_back("no write-behind cache: " + claims.error().what);
    return nullptr;
  }
  std::string note;
  auto protection =
      LogProtection::make(exchange, file, hints.cache_redundancy.value_or(CacheRedundancy{}),
                          claims->name, *place, counters, note);
  if (!note.empty()) notes.push_back(std::move(note));
  if (protection != nullptr) {
    protection->delay(hints.delayed.value_or(false));
    place->options.is_protected = true;
  }
  std::unique_ptr<CoherentCache> cache(new CoherentCache(
      exchange, file, std::move(*claims), std::move(*place), std::move(protection), counters));
  if (handles != nullptr) {
    cache->listed_.emplace(std::move(handles), [made = cache.get()] {
      return made->write_through("the program has the file open by another handle, too");
    });
  }
  return cache;
}

CoherentCache::CoherentCache(Exchange& exchange, StorageFile& file, OpenedClaims claims,
                             CachePlace place, std::unique_ptr<LogProtection> protection,
                             Counters& counters)
    : exchange_(exchange),
      file_(file),
      memory_(std::move(claims.memory)),
      place_(std::move(place)),
      counters_(counters),
      claims_(std::move(claims.claims)),
      server_(std::move(claims.server)),
      protection_(std::move(protection)) {}

CoherentCache::~CoherentCache() {
  listed_.reset();
  if (finishing_.joinable()) finishing_.join();
  if (answering_.joinable()) {
    answers_ = true;  // Where it was never said that it does.
    answers_.notify_all();
    claims_->close();
    answering_.join();
  }
  if (server_ != nullptr) ClaimsServer::retire(std::move(server_));
}

void CoherentCache::part() {
  claims_->leave();
  if (server_ != nullptr) ClaimsServer::retire(std::move(server_));
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
  auto store = place_.make_store(identity->log);
  if (!store) return tl::unexpected(store.error());
  auto opened = CachedFile::open(std::make_unique<Borrowed>(file_), std::move(*store), *identity,
                                 place_.capacity, place_.options);
  if (!opened) return tl::unexpected(opened.error());
  Status begun = (*opened)->commit(epoch_);
  if (begun) begun = begin_answering();
  if (!begun) {
    (void)(*opened)->discard();
    return begun;
  }
  log_ = std::move(*opened);
  for (int i = 0; i < ongoing_; ++i) log_->begin_access();
  made_ = log_.get();
  // Before anything is claimed: whoever meets a claim finds somebody to ask.
  claims_->open(identity->process);
  answers_ = true;
  answers_.notify_all();
  return {};
}

/// The thread that answers is there before others are told to ask: none may be to be had.
Status CoherentCache::begin_answering() {
  auto thread = try_background_thread([this] {
    answers_.wait(false);
    claims_->answer([this](const Claims::Question& question) { return answer(question); });
  });
  if (!thread) return tl::unexpected(thread.error());
  answering_ = std::move(*thread);
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
    if (answer.was_dirty && claims_->count_conflict() == most_conflicts) {
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

/// Null: this rank has no log, or none any more. With turn_ held.
CachedFile* CoherentCache::in_use() const { return closed_ ? nullptr : made_.load(); }

CoherentCache::Attempt CoherentCache::try_write(std::span<const iovec> pieces, Bytes offset) {
  const Extent extent{offset, total_bytes(pieces)};
  const std::shared_lock turn(turn_);
  if (through() || closed_) {
    auto held = foreign(extent);
    if (!held) return {.done = true, .written = tl::unexpected(held.error())};
    if (*held) return {.foreign = *held};
    CachedFile* const log = in_use();
    if (log == nullptr) {
      Attempt attempt{.done = true, .written = file_.write_pieces(pieces, offset)};
      unlogged_ = true;
      return attempt;
    }
    if (!log->writes_through()) return {};
    return {.done = true, .written = log->write_pieces(pieces, offset)};
  }
  const auto log = opened();
  if (!log) return {.failure = log.error()};
  // Whoever changed to writing through before this rank had a log did not ask it to.
  if (through()) return {};
  auto held = claims_->claim(extent);
  if (!held) return {.done = true, .written = tl::unexpected(held.error())};
  if (*held) return {.foreign = *held};
  unsettled_ = true;
  Attempt attempt{.done = true, .written = (*log)->write_pieces(pieces, offset)};
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
    const auto found = foreign(rest);
    if (!found) return tl::unexpected(found.error());
    const auto& held = *found;
    if (!held) break;
    const auto answer = ask(held->rank, {Claims::Wish::read, held->extent});
    if (!answer.status) return tl::unexpected(answer.status.error());
    const Bytes next = std::min(held->extent.end(), rest.end());
    rest = {next, rest.end() - next};
  }
  Result<Bytes> got;
  {
    const std::shared_lock turn(turn_);
    CachedFile* const log = in_use();
    got = log != nullptr ? log->read_pieces(pieces, offset) : file_.read_pieces(pieces, offset);
  }
  if (!got || *got == length) return got;
  // Up to what others hold behind it, there are zeros.
  const auto end_of_all = claims_->end();
  if (!end_of_all) return tl::unexpected(end_of_all.error());
  const Bytes end = std::min(*end_of_all - offset, length);
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
  const auto end = claims_->end();
  if (!end) return end;
  const auto size = file_.size();
  if (!size) return size;
  return std::max(*size, *end);
}

StripeLayout CoherentCache::layout() const {
  StripeLayout layout = file_.layout();
  layout.one_writer = layout.one_writer && through();
  return layout;
}

/// By way of this rank's log, which is to know, if it has one.
Status CoherentCache::change_length(Status (StorageFile::*change)(Bytes), Bytes size) {
  const std::shared_lock turn(turn_);
  if (CachedFile* const log = in_use()) return (log->*change)(size);
  auto changed = (file_.*change)(size);
  unlogged_ = true;
  return changed;
}

Status CoherentCache::resize(Bytes size) { return change_length(&StorageFile::resize, size); }

Status CoherentCache::allocate(Bytes size) { return change_length(&StorageFile::allocate, size); }

Status CoherentCache::sync() {
  const ScopedNanoseconds exposed(counters_.cache_exposed_ns);
  const std::shared_lock turn(turn_);
  CachedFile* const log = in_use();
  if (log == nullptr) {
    unlogged_ = true;  // Or what others did.
  } else if (auto synced = log->sync(); !synced) {
    return synced;
  }
  return sync_unlogged();
}

/// What was done to the file while there was no log, of which that knows nothing, is durable.
Status CoherentCache::sync_unlogged() {
  if (!unlogged_.exchange(false)) return {};
  auto synced = file_.sync();
  if (!synced) unlogged_ = true;
  return synced;
}

Status CoherentCache::commit(std::uint64_t next_epoch) {
  std::uint64_t epoch = epoch_;
  while (epoch < next_epoch && !epoch_.compare_exchange_weak(epoch, next_epoch)) {
  }
  const std::shared_lock turn(turn_);
  CachedFile* const log = in_use();
  return log != nullptr ? log->commit(std::max<std::uint64_t>(epoch_, log->epoch())) : Status{};
}

CoherentCache::OngoingWrite::OngoingWrite(CoherentCache* cache) : cache_(cache) {
  if (cache_ == nullptr) return;
  const std::scoped_lock lock(cache_->opening_);
  ++cache_->ongoing_;
  if (cache_->log_ != nullptr) cache_->log_->begin_access();
}

CoherentCache::OngoingWrite::~OngoingWrite() {
  if (cache_ == nullptr) return;
  const std::scoped_lock lock(cache_->opening_);
  --cache_->ongoing_;
  if (cache_->log_ != nullptr) cache_->log_->end_access();
}

Status CoherentCache::settle() {
  const ScopedNanoseconds exposed(counters_.cache_exposed_ns);
  const std::unique_lock turn(turn_);
  return settle_log();
}

Status CoherentCache::settle_log() {
  auto emptied = empty_log();
  back_to_log();
  return emptied;
}

/// If it takes more; else all ranks write to the file. Nobody need empty his log for that: each
/// does before he writes anything more.
void CoherentCache::back_to_log() {
  if (made_ == nullptr || closed_ || through()) return;
  const Status back = log_->set_write_through(false);
  if (back) return;
  claims_->set_flag(for_good);
  add_note("write-behind cache given up: " + to_string(back.error()));
}

Status CoherentCache::set_atomic(bool atomic) {
  if (atomic) {
    claims_->set_flag(while_atomic);
    const ScopedNanoseconds exposed(counters_.cache_exposed_ns);
    const std::unique_lock turn(turn_);
    return empty_log();
  }
  claims_->clear_flag(while_atomic);
  const std::unique_lock turn(turn_);
  back_to_log();
  return {};
}

Status CoherentCache::write_through(const std::string& reason) {
  claims_->set_flag(for_good);
  add_note("write-behind cache given up: " + reason);
  const Status status = ask_all_to_empty();
  const std::unique_lock turn(turn_);
  auto emptied = empty_log();
  if (status && emptied) claims_->set_flag(nothing_held);
  return status ? emptied : status;
}

bool CoherentCache::given_up() const { return (claims_->flags() & for_good) != 0; }

bool CoherentCache::through() const { return (claims_->flags() & (while_atomic | for_good)) != 0; }

/// The first part of `extent` that another rank may have in its log.
Result<std::optional<Claims::Foreign>> CoherentCache::foreign(Extent extent) const {
  if ((claims_->flags() & nothing_held) != 0) return std::nullopt;
  return claims_->foreign(extent);
}

Status CoherentCache::ask_all_to_empty() {
  Status status;
  for (int from = 0;;) {
    // Where many ask, the first one to be through has done it for the others.
    if ((claims_->flags() & nothing_held) != 0) return status;
    const auto rank = claims_->next_open(from);
    if (!rank) return status ? tl::unexpected(rank.error()) : status;
    if (!*rank) return status;
    from = **rank + 1;
    if (**rank == place_.rank) continue;
    const auto answer = ask(**rank, {Claims::Wish::write_through, {}});
    if (status) status = answer.status;
  }
}

/// Nothing is in the log, and writes go to the file. With turn_ held alone.
Status CoherentCache::empty_log() {
  if (made_ == nullptr || closed_) return {};
  auto emptied = log_->set_write_through(true);
  if (!emptied) return emptied;
  claims_->release_all();
  unsettled_ = false;
  return {};
}

Claims::Answer CoherentCache::ask(int rank, const Claims::Question& question) {
  const ScopedNanoseconds exposed(counters_.cache_exposed_ns);
  const std::scoped_lock lock(asking_);
  auto answer = claims_->ask(rank, question);
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
  const auto end = claims_->end();
  const bool apart = end && !claims_->shares_places(*end);
  answer.status = apart ? log_->drain(question.extent) : log_->drain();
  if (!answer.status) return answer;
  // As long as the log holds it, and may replay it, whoever writes there next has to ask.
  if (!unsettled_) claims_->release(question.extent);
  return answer;
}

Status CoherentCache::protect(Moment moment) {
  if (protection_ == nullptr) return {};
  if (moment == Moment::end) protection_->delay(false);
  // What has come to the file is told in a delay, too: else older bytes would be rebuilt.
  const bool in_file = moment == Moment::emptied ||
                       (moment == Moment::sync && place_.options.sync == SyncScope::file);
  if (protection_->delayed() && !in_file) return {};
  const auto outlook = protection_->look(log(), given_up());
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
  if (discard) exchange_.barrier();  // Others may still read what this rank's log holds.
  return close_log(discard);
}

Status CoherentCache::close_log(bool discard) {
  const std::unique_lock turn(turn_);
  // Where that fails, what is in the log is to be brought to the file all the same.
  const Status synced = discard ? Status{} : sync_unlogged();
  if (made_ == nullptr || closed_) {
    end_protection();
    closed_ = true;  // No log is made any more.
    return synced;
  }
  auto closed = discard ? log_->discard() : log_->close();
  count_progress();
  if (!closed) return closed;
  if (const Error left = log_->state().left; left.kind != ErrorKind::none) {
    add_note("a write-behind log is left, all of which is in the file: " + to_string(left));
  }
  remember_pace(place_.file_system, place_.path, log_->pace());
  // What is not flushed ever is to be rebuilt.
  if (discard || place_.options.flush != CacheFlush::none) end_protection();
  claims_->release_all();
  closed_ = true;
  return synced;
}

Result<bool> CoherentCache::close_early() {
  if (place_.options.flush != CacheFlush::deferred) {
    auto closed = close_together();
    return closed ? Result<bool>(false) : tl::unexpected(closed.error());
  }
  if (auto safe = protect(Moment::end); !safe) return tl::unexpected(safe.error());
  const std::unique_lock turn(turn_);
  if (made_ != nullptr && !closed_) {
    log_->end_writing();
    count_progress();
    // What came to the file already may have been cut away since by somebody else.
    claims_->set_end(log_->dirty_end());
  }
  return true;  // Other ranks may have logs.
}

void CoherentCache::start_finishing() {
  if (made_ == nullptr) return;
  // Where other logs are rebuilt from this one, it stays until they are in the file too.
  auto thread = try_background_thread([this, stays = protection_ != nullptr] {
    // Where each rank's writes reach its own end only, others would be kept away again.
    file_.lengthen(claims_->end().value_or(0));
    log_->start_draining();
    if (stays) {
      const std::unique_lock turn(turn_);
      finished_ = settle_log();
      return;
    }
    finished_ = close_log(false);
    // Nobody need ask this rank any more.
    if (finished_) claims_->close();
  });
  // Where there is none, finish() does it all.
  if (thread) finishing_ = std::move(*thread);
}

/// No log and no parity goes before all that is protected with it is in the file.
Status CoherentCache::close_together() {
  const bool stays = place_.options.flush == CacheFlush::none;
  if (stays) exchange_.barrier();  // What does not come to the file is read from the logs.
  if (protection_ == nullptr) return close(false);
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
  const std::int64_t counted = std::exchange(crowded_ns_, state.crowded_ns);
  Counters::add(counters_.cache_exposed_ns, state.crowded_ns - counted);
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
