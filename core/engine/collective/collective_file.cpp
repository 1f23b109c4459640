#include "core/engine/collective/collective_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <memory>
#include <new>
#include <optional>
#include <utility>

#include "core/engine/collective/agreed_cost.hpp"
#include "core/engine/collective/agreed_error.hpp"
#include "core/engine/collective/agreed_opening.hpp"
#include "core/engine/collective/cache_place.hpp"
#include "core/engine/collective/call_agreement.hpp"
#include "core/engine/collective/call_notes.hpp"
#include "core/engine/collective/coherent_cache.hpp"
#include "core/engine/collective/cost_memory.hpp"
#include "core/engine/collective/direct_io.hpp"
#include "core/engine/collective/io_pool.hpp"
#include "core/engine/collective/rounds.hpp"
#include "core/engine/collective/scoped_nanoseconds.hpp"
#include "core/engine/collective/sieve_watch.hpp"
#include "core/engine/collective/unasked_calls.hpp"
#include "core/plan/fitted_domains.hpp"
#include "core/storage/layout.hpp"

namespace forebay {
namespace {

/// An aggregator's unit that is fitted to what ranks write: two windows of it a node and
/// aggregator are kept in memory.
constexpr Bytes most_fitted_unit = 1 * MiB;

/// What a rank says about sieving of writes under new views. The highest of all ranks' counts.
enum class SieveVote : std::int64_t {
  indifferent,
  wanted,      ///< Its own writes would gain.
  impossible,  ///< Somebody could write into a gap meanwhile.
};

/// Whether locks on ranges of `storage` work, by one that nobody else wants.
bool locks_work(StorageFile& storage) {
  constexpr Extent nowhere{std::numeric_limits<Bytes>::max() - 1, 1};
  return storage.lock(nowhere, StorageFile::LockKind::shared) && storage.unlock(nowhere);
}

/// What the cache needs to go on without the file.
class Unfinished final : public HeldBack {
 public:
  Unfinished(std::unique_ptr<StorageFile> storage, std::unique_ptr<CoherentCache> cache)
      : storage_(std::move(storage)), cache_(std::move(cache)) {}
  void start() override { cache_->start_finishing(); }
  Status finish() override { return cache_->finish(); }

 private:
  std::unique_ptr<StorageFile> storage_;
  std::unique_ptr<CoherentCache> cache_;  ///< Last: it uses the other.
};

class EngineFile final : public CollectiveFile {
 public:
  EngineFile(std::shared_ptr<Exchange> exchange, std::unique_ptr<StorageFile> storage,
             const Hints& hints, Counters& counters, NanosecondClock clock, Writers writers,
             std::shared_ptr<FileHandles> handles)
      : exchange_(std::move(exchange)),
        storage_(std::make_unique<TimedFile>(std::move(storage), std::move(clock))),
        counters_(counters),
        file_system_(exchange_->rank() == 0 ? file_system_id(storage_->path()) : std::nullopt),
        agreed_(agree_on(*exchange_, storage_->layout(), hints, cost_to_start_with())),
        codec_(agreed_.hints.compress),
        cost_(agreed_.layout, *storage_, exchange_->ranks_on_host(), agreed_.start),
        agreement_(*exchange_, cost_, counters),
        writers_(writers),
        watch_(storage_->id()),
        base_(domains_wanted()),
        cast_{base_, {}},
        cache_(CoherentCache::open(*exchange_, *storage_, agreed_.hints, granule_of(base_.unit),
                                   counters, cache_notes_, std::move(handles))),
        direct_(data(), counters, expected_cost(agreed_.layout, false), watch_) {
    direct_.set_hints(agreed_.hints);
    if (cache_ != nullptr) cached_ = {.unit = base_.unit, .granule = granule_of(base_.unit)};
    begin_fitted();
  }

  ~EngineFile() override {
    if (board_ != nullptr && board_->worth_keeping()) exchange_->leave(std::move(board_));
    if (file_system_ && !agreed_.layout.striped()) remember_cost(*file_system_, cost_.outlook());
  }

  Result<Bytes> write_all(const Access& access) override {
    Counters::add(counters_.collective_calls, 1);
    const CoherentCache::OngoingWrite writing(cache_.get());
    if (unasked_calls_.take()) return go_unasked(true, access);
    if (atomic_ || others_sieve()) return go_direct(true, access);
    auto agreed = agree(access, true);
    if (agreed && fit_domains(**agreed)) agreed = agree(access, true);
    if (!agreed) return tl::unexpected(agreed.error());
    const bool split = (*agreed)->path == Path::split;
    const auto& schedule = split ? (*agreed)->ends : *agreed;
    if (schedule->path == Path::direct || !prepare_exchange(*schedule)) {
      return go_direct(true, access);
    }
    cached_.gathered = cached_.unit > 0;
    DirectIo::Inside inside;
    if (split) inside = direct_.write_inside(access, cached_.granule);
    WriteRounds rounds(context(*schedule, true));
    // Where there is no memory for ends, the call has failed, and others wait for them all the
    // same.
    rounds.run(inside.ends == nullptr ? access.memory : memory_at(inside.ends.get()));
    finish_rounds(*schedule);
    const Error mine = worse(std::move(inside.error), std::exchange(untold_, {}));
    return conclude(true, worse(rounds.error(), mine), access, end_unknown);
  }

  Result<Bytes> read_all(const Access& access) override {
    Counters::add(counters_.collective_calls, 1);
    if (unasked_calls_.take()) return go_unasked(false, access);
    if (atomic_) return go_direct(false, access);
    const auto agreed = agree(access, false);
    if (!agreed) return tl::unexpected(agreed.error());
    const auto& schedule = *agreed;
    if (schedule->path == Path::direct || !prepare_exchange(*schedule)) {
      return go_direct(false, access);
    }
    ReadRounds rounds(context(*schedule, false));
    const Bytes end_of_file = rounds.run(access.memory);
    finish_rounds(*schedule);
    return conclude(false, rounds.error(), access, end_of_file);
  }

  Result<Bytes> write(const Access& access) override {
    const CoherentCache::OngoingWrite writing(cache_.get());
    auto written = direct_.write(access);
    if (cache_ == nullptr) return written;
    const Status committed = cache_->commit();
    return written && !committed ? tl::unexpected(committed.error()) : written;
  }
  Result<Bytes> read(const Access& access) override { return direct_.read(access); }

  std::int64_t vote_on_sieving(const TiledTree& view) override {
    view_ = view;
    // Pieces go to a log, and what lies in the gaps may be in another rank's.
    if (cache_ != nullptr) return static_cast<std::int64_t>(SieveVote::impossible);
    const bool asked_for = agreed_.hints.sieve_write == Toggle::enable;
    // Bytes that nobody locks are safe only from those who do not sieve.
    SieveVote vote = SieveVote::indifferent;
    if (!asked_for && writers_ != Writers::ranks) vote = SieveVote::impossible;
    if (vote != SieveVote::impossible && direct_.sieving_helps(view, sieving_cost())) {
      vote = SieveVote::wanted;
    }
    if (asked_for || vote == SieveVote::wanted) {
      if (!locks_work_) locks_work_ = locks_work(*storage_);
      if (!*locks_work_) vote = SieveVote::impossible;
    }
    return static_cast<std::int64_t>(vote);
  }

  void view_changed(std::int64_t highest_vote) override {
    unasked_calls_.end();
    const bool sieving = static_cast<SieveVote>(highest_vote) == SieveVote::wanted;
    direct_.set_sieving(sieving ? std::optional(sieving_cost()) : std::nullopt);
    // Only what all processes of the program know alike may be announced.
    watch_.announce(sieving && writers_ == Writers::ranks);
  }

  void set_atomic(bool atomic) override {
    if (cache_ != nullptr && atomic != atomic_) {
      exchange_->barrier();  // Nobody is still writing as before.
      keep(cache_->set_atomic(atomic));
      keep(cache_->protect(CoherentCache::Moment::emptied));
    }
    atomic_ = atomic;
    direct_.set_atomic(atomic);
    exchange_->barrier();
  }

  bool holds_back() const override { return cache_ != nullptr; }

  Status flush() override {
    if (cache_ == nullptr) return {};
    const Status settled = cache_->settle();
    const Status safe = cache_->protect(CoherentCache::Moment::emptied);
    return settled ? safe : settled;
  }

  Status hold_nothing_back(const std::string& reason) override {
    return cache_ == nullptr ? Status{} : cache_->write_through(reason);
  }

  Status close(bool discard) override {
    return cache_ == nullptr ? Status{} : cache_->close(discard);
  }

  Result<std::unique_ptr<HeldBack>> close_early() override {
    if (cache_ == nullptr) return nullptr;
    const auto early = cache_->close_early();
    if (!early) return tl::unexpected(early.error());
    if (!*early) return nullptr;
    notes_held_back_ = cache_->notes();
    return std::make_unique<Unfinished>(std::move(storage_), std::move(cache_));
  }

  Status close_together() override {
    if (cache_ == nullptr) return {};
    const Status closed = cache_->close_together();
    std::int64_t failed = closed ? 0 : 1;
    exchange_->all_reduce({&failed, 1}, Reduce::max);
    if (failed == 0) cache_->part();
    return closed;
  }

  Status sync() override {
    const Status synced = data().sync();
    if (cache_ != nullptr) keep(cache_->protect(CoherentCache::Moment::sync));
    return settle(worse(synced ? Error{} : synced.error(), std::exchange(untold_, {})));
  }

  LateHints set_hints(const Hints& hints) override {
    const Hints before = agreed_.hints;
    agreed_ = agree_on(*exchange_, agreed_.layout, hints, agreed_.start);
    LateHints late{.cache = !keep_cache_hints(agreed_.hints, before, cache_ != nullptr)};
    if (cache_ != nullptr) keep(cache_->set_delayed(agreed_.hints.delayed.value_or(false)));
    direct_.set_hints(agreed_.hints);
    std::int64_t vote = vote_on_sieving(TiledTree(view_));
    exchange_->all_reduce({&vote, 1}, Reduce::max);
    view_changed(vote);
    FileDomains wanted = domains_wanted();
    if (in_order_) wanted = wanted.with_unit(cast_.domains.unit);
    if (board_ == nullptr && cache_ == nullptr) {  // The cache's granules go by them.
      cast_.domains = wanted;
    } else {
      agreed_.hints.aggregators_per_node = before.aggregators_per_node;
    }
    late.aggregators = wanted != cast_.domains;
    return late;
  }

  Hints hints_in_force() const override {
    Hints hints = agreed_.hints;
    if (hints.cache) hints.cache = cache_ != nullptr;
    if (cache_ == nullptr || !cache_->is_protected()) hints.cache_redundancy.reset();
    if (cache_ != nullptr) hints.independent_write_buffer = flush_bytes(hints);
    hints.aggregators = cast_.domains.aggregators;
    hints.buffer_size = cast_.domains.window_bytes();
    if (agreed_.layout.striped()) {
      hints.stripe_size = agreed_.layout.stripe_size;
      hints.stripe_count = agreed_.layout.servers;
    } else {
      hints.stripe_size.reset();
      hints.stripe_count.reset();
    }
    return hints;
  }

  std::vector<int> aggregators() const override { return cast_.aggregator_ranks; }

  std::vector<std::string> notes() const override {
    std::vector<std::string> notes = call_notes(counters_, cost_);
    notes.insert(notes.end(), cache_notes_.begin(), cache_notes_.end());
    if (no_board_.kind != ErrorKind::none) {
      notes.push_back("no exchange: " + to_string(no_board_));
    }
    if (counters_.messages.load() > 0) {
      notes.push_back(fmt::format(
          "messages between nodes: {} of {} bytes after compression ({}), {} links compress now",
          counters_.message_bytes.load(), counters_.message_bytes_raw.load(),
          agreed_.hints.compress == Toggle::automatic ? "where it pays"
          : agreed_.hints.compress == Toggle::enable  ? "always"
                                                      : "never",
          codec_.pairs_on()));
    }
    return notes;
  }

  std::vector<std::string> own_notes() const override {
    return cache_ != nullptr ? cache_->notes() : notes_held_back_;
  }

  const Error& untold_error() const override { return untold_; }

  StorageFile& storage() override { return data(); }
  Exchange& exchange() override { return *exchange_; }

 private:
  static TiledTree memory_at(void* address) {
    return {StridedTree::contiguous(1), reinterpret_cast<std::intptr_t>(address), 1};
  }

  static constexpr Bytes end_unknown = std::numeric_limits<Bytes>::max();

  CostWord cost_to_start_with() const {
    const auto known = file_system_ ? remembered_cost(*file_system_) : std::nullopt;
    return known.value_or(CostWord{});
  }

  /// What data calls read and write.
  StorageFile& data() {
    if (cache_ != nullptr) return *cache_;
    return *storage_;
  }

  /// As the layout and the hints want them, whatever ranks write.
  FileDomains domains_wanted() const {
    return domains_for(agreed_.layout, agreed_.hints,
                       choose_aggregators(agreed_.layout, exchange_->nodes().nodes(),
                                          exchange_->size(), agreed_.adapters, agreed_.hints));
  }

  /// The domains that an earlier file's parts were fitted with; the same on every rank.
  void begin_fitted() {
    const auto unit = agreement_.history().fitted_unit();
    if (!may_fit() || !unit || *unit % base_.unit != 0) return;
    cast_.domains = base_.with_unit(*unit);
    in_order_ = true;
  }

  /// With a cache, which keeps ranks apart by itself, domains may change between calls.
  bool may_fit() const { return cache_ != nullptr && agreed_.layout.striped(); }

  /// The first exchange that is worth it settles the domains, so that what ranks write stays with
  /// them or near them. True, on every rank, if the plan is another one then.
  bool fit_domains(const Schedule& schedule) {
    if (!may_fit() || fitted_ || schedule.path != Path::exchange ||
        schedule.total < exchange_->size() * base_.unit) {
      return false;
    }
    fitted_ = true;
    const auto fitted = fitted_domains(schedule.parts, base_, most_fitted_unit);
    agreement_.history().keep_fitted_unit(fitted ? std::optional(fitted->unit) : std::nullopt);
    const FileDomains domains = fitted.value_or(base_);
    if (domains == cast_.domains && in_order_ == fitted.has_value()) return false;
    cast_.domains = domains;
    in_order_ = fitted.has_value();
    pool_.reset();  // The last job of the call before may still ring a bell of the board.
    board_.reset();
    reserve_.reset();
    no_board_ = {};
    return true;
  }

  /// The rank that serves each class of the domains.
  std::vector<int> placed(const Schedule& schedule) const {
    if (in_order_) return fitted_ranks(cast_.domains.aggregators, exchange_->size());
    const NodeMap& nodes = exchange_->nodes();
    return assign_aggregators(
        domain_locality(schedule, cast_.domains, nodes.node_of_rank, nodes.nodes(), 8),
        nodes.ranks_of_node);
  }

  SievingCost sieving_cost() const {
    const StorageCost& writing = cost_.of(true);
    SievingCost cost{writing, cost_.of(false)};
    if (writing.measured) return cost;
    cost.in_turn = storage_->layout().one_writer;
    if (agreed_.layout.striped()) cost.cached_piece = client_cached_piece;
    return cost;
  }

  /// Ranks that are not in this file's calls sieve through another handle, so its aggregators would
  /// write into their gaps; the same on every rank, since all are in the other file's calls too.
  bool others_sieve() const { return writers_ != Writers::ranks && watch_.another_sieves(); }

  Result<std::shared_ptr<const Schedule>> agree(const Access& access, bool writing) {
    auto agreed = agreement_.agree(
        access, {writing, agreed_.layout,
                 writing ? agreed_.hints.collective_write : agreed_.hints.collective_read,
                 cast_.domains, writing ? cached_ : CachedWrites{}});
    if (!agreed) return agreed;
    // A page cache takes one piece from each rank at least as fast as an exchange could merge them,
    // whatever their sizes: as long as these views last, calls need no agreement. But that it is a
    // page cache shows only when calls are made: after some, ranks ask each other again. With logs
    // they do it sooner, and each time where pieces may meet: where, differs from call to call.
    const bool slow = std::max(cost_.of(true).call_ns, cost_.of(false).call_ns) > slow_call_ns;
    if (slow || cached_.unit > 0) unasked_calls_.begin_anew();
    if (!slow && (*agreed)->path == Path::direct && agreement_.all_seamless() &&
        !agreed_.layout.striped() && agreed_.hints.collective_write != Toggle::enable &&
        agreed_.hints.collective_read != Toggle::enable && stays_apart(**agreed, writing)) {
      unasked_calls_.grant();
    }
    return agreed;
  }

  /// Whether calls like this one go on to leave each rank its granules, if there is a cache.
  bool stays_apart(const Schedule& schedule, bool writing) const {
    if (cached_.unit == 0) return true;
    return writing && schedule.total > 0 && !cached_.gathered &&
           whole_granules(schedule.parts, cached_.granule);
  }

  /// Every rank moves its own pieces; what failed on one of them is an error on all.
  Result<Bytes> go_direct(bool writing, const Access& access) {
    Result<Bytes> moved = move_own(writing, access);
    Error mine = moved ? Error{} : moved.error();
    if (writing) mine = worse(std::move(mine), std::exchange(untold_, {}));
    auto settled = writing ? settle_write(mine) : settle(mine);
    if (!settled) return tl::unexpected(std::move(settled.error()));
    return moved;
  }

  /// The same without a word to the others. What fails is an error here at once, and on all ranks
  /// when they next have to talk.
  Result<Bytes> go_unasked(bool writing, const Access& access) {
    Result<Bytes> moved = move_own(writing, access);
    if (writing && !moved) untold_ = worse(std::move(untold_), moved.error());
    if (writing) commit_epoch(0);
    return moved;
  }

  Result<Bytes> move_own(bool writing, const Access& access) {
    Counters::add(counters_.direct_calls, 1);
    return writing ? direct_.write(access) : direct_.read(access);
  }

  static Error worse(Error one, Error other) {
    return one.kind >= other.kind ? std::move(one) : std::move(other);
  }

  Status settle(const Error& mine) {
    const ScopedNanoseconds timer(counters_.waiting_ns);
    return worst_of_all(*exchange_, mine);
  }

  /// settle() at the end of a collective write: what ranks wrote is whole.
  Status settle_write(const Error& mine) {
    commit_own();
    std::array<std::int64_t, 3> word{pack(mine), epoch(), cache_given_up()};
    {
      const ScopedNanoseconds timer(counters_.waiting_ns);
      exchange_->all_reduce(word, Reduce::max);
    }
    if (word[2] != 0) cached_ = {};
    commit_epoch(word[1] + 1);
    return word[0] == 0 ? Status{} : tl::unexpected(agreed_error(word[0], mine));
  }

  std::int64_t epoch() const {
    return cache_ == nullptr ? 0 : static_cast<std::int64_t>(cache_->epoch());
  }

  /// Not 0 where this rank knows that all write to the file for good.
  std::int64_t cache_given_up() const { return cache_ != nullptr && cache_->given_up() ? 1 : 0; }

  /// Before ranks agree on the end of a collective write: its own part is whole. So whatever dies
  /// once a rank has returned, no log ends with a part of what a program had finished.
  void commit_own() {
    if (cache_ != nullptr) keep(cache_->commit(cache_->epoch()));
  }

  /// At the end of a collective write: what this rank wrote is whole. The next epoch is the one
  /// that ranks agreed on, if they did.
  void commit_epoch(std::int64_t next) {
    if (cache_ == nullptr) return;
    keep(cache_->commit(std::max(static_cast<std::uint64_t>(next), cache_->epoch())));
    keep(cache_->protect(CoherentCache::Moment::commit));
  }

  /// For the next call that tells of errors.
  void keep(const Status& status) {
    if (!status) untold_ = worse(std::move(untold_), status.error());
  }

  /// The first exchange of a file places the aggregators and makes the buffers. The same result on
  /// every rank.
  Status prepare_exchange(const Schedule& schedule) {
    if (board_) return {};
    if (no_board_.kind != ErrorKind::none) return tl::unexpected(no_board_);
    cast_.aggregator_ranks = placed(schedule);
    auto board = board_for(cast_.domains.aggregators, cast_.domains.window_bytes());
    if (board) board = with_reserve(std::move(*board));
    if (!board) {
      no_board_ = board.error();
      return tl::unexpected(no_board_);
    }
    board_ = std::move(*board);
    return {};
  }

  /// The one that an earlier file left, or a new one.
  Result<std::shared_ptr<Board>> board_for(int aggregators, Bytes window_bytes) {
    auto left = exchange_->take_board();
    if (left != nullptr && left->fits(aggregators, window_bytes)) return left;
    left.reset();  // Before there is a second one.
    return Board::make(*exchange_, aggregators, window_bytes);
  }

  /// `board`, or the reason on every rank why some aggregator has no reserve.
  Result<std::shared_ptr<Board>> with_reserve(std::shared_ptr<Board> board) {
    if (exchange_->nodes().nodes() == 1) return board;  // No messages.
    Error mine;
    if (serves()) {
      const auto bytes = static_cast<std::size_t>(cast_.domains.window_bytes());
      reserve_.reset(new (std::nothrow) std::byte[bytes]);
      if (reserve_ == nullptr) mine = {ErrorKind::no_memory, 0, "a buffer for messages"};
    }
    if (auto settled = settle(mine); !settled) return tl::unexpected(std::move(settled.error()));
    return board;
  }

  /// Whether this rank is an aggregator.
  bool serves() const {
    return std::ranges::find(cast_.aggregator_ranks, exchange_->rank()) !=
           cast_.aggregator_ranks.end();
  }

  RoundsContext context(const Schedule& schedule, bool writing) {
    const auto bytes = static_cast<std::size_t>(cast_.domains.window_bytes());
    return {*exchange_,
            *board_,
            data(),
            pool_for(writing),
            codec_,
            counters_,
            cast_,
            schedule,
            cost_.of(writing),
            {reserve_.get(), reserve_ == nullptr ? 0 : bytes},
            board_->next_window()};
  }

  /// The threads for an aggregator's storage calls, where it has any; its own matter.
  IoPool* pool_for(bool writing) {
    if (!serves()) return nullptr;
    const int depth = agreed_.hints.io_depth.value_or(automatic_io_depth(
        agreed_.layout, writing, cost_.of(writing), cast_.domains.window_bytes()));
    if (depth == 0) return nullptr;
    if (pool_ == nullptr) pool_ = std::make_unique<IoPool>(depth);
    return pool_.get();
  }

  void finish_rounds(const Schedule& schedule) {
    board_->pass_windows(schedule.rounds.size());
    Counters::add(counters_.exchanged_calls, 1);
    Counters::add(counters_.rounds, static_cast<std::int64_t>(schedule.rounds.size()));
  }

  /// What a rank's exchanged call comes to, once every rank's storage calls are known.
  Result<Bytes> conclude(bool writing, const Error& mine, const Access& access, Bytes end_of_file) {
    if (writing) commit_own();
    std::int64_t word[4] = {pack(mine), -end_of_file, epoch(), cache_given_up()};
    {
      const ScopedNanoseconds timer(counters_.waiting_ns);
      exchange_->all_reduce(word, Reduce::max);
    }
    if (word[3] != 0) cached_ = {};
    if (writing) commit_epoch(word[2] + 1);
    if (word[0] != 0) return tl::unexpected(agreed_error(word[0], mine));
    if (-word[1] == end_unknown || access.length == 0) return access.length;
    const Bytes before_end = data_before(access.view, -word[1]);
    return std::clamp<Bytes>(before_end - access.start, 0, access.length);
  }

  std::shared_ptr<Exchange> exchange_;
  std::unique_ptr<TimedFile> storage_;
  Counters& counters_;
  std::optional<std::uint64_t> file_system_;  ///< Its id; on rank 0 alone.
  Agreed agreed_;
  MessageCodec codec_;
  AgreedCost cost_;
  CallAgreement agreement_;
  const Writers writers_;
  SieveWatch watch_;
  const FileDomains base_;  ///< As layout and hints wanted them when the file was opened.
  Cast cast_;
  bool fitted_ = false;                   ///< The domains were held against what ranks write.
  bool in_order_ = false;                 ///< They fit it, or what ranks wrote to an earlier file.
  std::vector<std::string> cache_notes_;  ///< Why there is none although it was asked for.
  std::vector<std::string> notes_held_back_;  ///< Its own, once it goes on after the close.
  std::unique_ptr<CoherentCache> cache_;      ///< Null: data calls go to the file.
  CachedWrites cached_;  ///< Without a unit once all know that it was given up.
  DirectIo direct_;
  TiledTree view_;                  ///< The newest that was voted on.
  std::optional<bool> locks_work_;  ///< None before it mattered.
  std::shared_ptr<Board> board_;
  std::unique_ptr<std::byte[]> reserve_;  ///< As RoundsContext says.
  Error no_board_;  ///< Why there are no buffers to exchange through; the same on every rank.
  std::unique_ptr<IoPool> pool_;  ///< After what its jobs use: destroyed first.
  bool atomic_ = false;
  Error untold_;                ///< Of a write that other ranks do not know of.
  UnaskedCalls unasked_calls_;  ///< Until views or hints change.
};

}  // namespace

std::unique_ptr<CollectiveFile> CollectiveFile::open(std::shared_ptr<Exchange> exchange,
                                                     std::unique_ptr<StorageFile> storage,
                                                     const Hints& hints, Counters& counters,
                                                     NanosecondClock clock, Writers writers,
                                                     std::shared_ptr<FileHandles> handles) {
  return std::make_unique<EngineFile>(std::move(exchange), std::move(storage), hints, counters,
                                      std::move(clock), writers, std::move(handles));
}

}  // namespace forebay
