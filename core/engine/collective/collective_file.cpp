#include "core/engine/collective/collective_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "core/engine/collective/call_agreement.hpp"
#include "core/engine/collective/direct_io.hpp"
#include "core/engine/collective/hardware.hpp"
#include "core/engine/collective/io_pool.hpp"
#include "core/engine/collective/rounds.hpp"
#include "core/engine/collective/scoped_nanoseconds.hpp"

namespace forebay {
namespace {

/// On a striped file several calls under way keep several servers busy.
constexpr int striped_io_depth = 4;
/// Each call under way has a thread.
constexpr int most_io_depth = 256;

/// Windows of files that are not striped stay in a core's cache between the copy into them and the
/// write out of them.
constexpr Bytes local_window_bytes = 512 * KiB;
constexpr Bytes striped_window_bytes = 4 * MiB;
constexpr Bytes striped_window_units = 8;

/// A smaller window would cost more in rounds than it saves in memory; a larger one would not fit
/// into a message.
constexpr Bytes least_window_bytes = 4 * KiB;
constexpr Bytes most_window_bytes = 256 * MiB;

/// An error as one number, ordered by severity, for the reduction over ranks.
std::int64_t pack(const Error& error) {
  return (static_cast<std::int64_t>(error.kind) << 32) | static_cast<std::int64_t>(error.os_errno);
}

/// Rank 0's word for all: hints and layout decide where collective messages go, so a rank that
/// thought otherwise would wait for ever.
struct Agreed {
  StripeLayout layout;
  Hints hints;
};

Agreed agree_on(Exchange& exchange, const StripeLayout& layout, const Hints& hints) {
  Hints agreed = hints;
  if (agreed.io_depth) agreed.io_depth = std::min(*agreed.io_depth, most_io_depth);
  const auto optional = [](const auto& value) {
    return value ? static_cast<std::int64_t>(*value) : std::int64_t{-1};
  };
  std::array<std::int64_t, 12> word{layout.stripe_size,
                                    layout.servers,
                                    layout.lock_conflicts,
                                    optional(hints.aggregators),
                                    optional(hints.aggregators_per_node),
                                    optional(hints.buffer_size),
                                    optional(hints.stripe_size),
                                    optional(hints.stripe_count),
                                    static_cast<std::int64_t>(hints.collective_write),
                                    static_cast<std::int64_t>(hints.collective_read),
                                    static_cast<std::int64_t>(hints.compress),
                                    hints.no_independent};
  if (exchange.rank() != 0) word.fill(0);
  exchange.all_reduce(word, Reduce::sum);
  const auto given = [&word](std::size_t i, auto& field) {
    using Value = typename std::decay_t<decltype(field)>::value_type;
    field.reset();
    if (word[i] >= 0) field = static_cast<Value>(word[i]);
  };
  given(3, agreed.aggregators);
  given(4, agreed.aggregators_per_node);
  given(5, agreed.buffer_size);
  given(6, agreed.stripe_size);
  given(7, agreed.stripe_count);
  agreed.collective_write = static_cast<Toggle>(word[8]);
  agreed.collective_read = static_cast<Toggle>(word[9]);
  agreed.compress = static_cast<Toggle>(word[10]);
  agreed.no_independent = word[11] != 0;
  return {{word[0], static_cast<int>(word[1]), word[2] != 0}, agreed};
}

class EngineFile final : public CollectiveFile {
 public:
  EngineFile(std::shared_ptr<Exchange> exchange, std::unique_ptr<StorageFile> storage,
             const Hints& hints, Counters& counters)
      : exchange_(std::move(exchange)),
        storage_(std::move(storage)),
        counters_(counters),
        agreed_(agree_on(*exchange_, storage_->layout(), hints)),
        codec_(agreed_.hints.compress),
        agreement_(*exchange_, counters),
        direct_(*storage_, counters, expected_cost(agreed_.layout, false)) {
    direct_.set_hints(agreed_.hints);
    decide_domains();
  }

  Result<Bytes> write_all(const Access& access) override {
    Counters::add(counters_.collective_calls, 1);
    if (atomic_ || always_direct_) return go_direct(true, access);
    const auto agreed = agree(access, true);
    if (!agreed) return tl::unexpected(agreed.error());
    const auto& schedule = *agreed;
    if (schedule->path == Path::direct || !prepare_exchange(*schedule)) {
      return go_direct(true, access);
    }
    WriteRounds rounds(context(*schedule, true));
    rounds.run(access.memory);
    finish_rounds(*schedule);
    return conclude(rounds.error(), access, end_unknown);
  }

  Result<Bytes> read_all(const Access& access) override {
    Counters::add(counters_.collective_calls, 1);
    if (atomic_ || always_direct_) return go_direct(false, access);
    const auto agreed = agree(access, false);
    if (!agreed) return tl::unexpected(agreed.error());
    const auto& schedule = *agreed;
    if (schedule->path == Path::direct || !prepare_exchange(*schedule)) {
      return go_direct(false, access);
    }
    ReadRounds rounds(context(*schedule, false));
    const Bytes end_of_file = rounds.run(access.memory);
    finish_rounds(*schedule);
    return conclude(rounds.error(), access, end_of_file);
  }

  Result<Bytes> write(const Access& access) override { return direct_.write(access); }
  Result<Bytes> read(const Access& access) override { return direct_.read(access); }

  void view_changed() override { always_direct_ = false; }

  void set_atomic(bool atomic) override {
    atomic_ = atomic;
    direct_.set_atomic(atomic);
    exchange_->barrier();
  }

  Status sync() override {
    // Nothing is held back in this process: what was written is in the file system already.
    const Status mine = storage_->sync();
    std::int64_t worst = mine ? 0 : pack(mine.error());
    exchange_->all_reduce({&worst, 1}, Reduce::max);
    return worst == 0 ? Status{} : tl::unexpected(unpack(worst, mine ? Error{} : mine.error()));
  }

  void set_hints(const Hints& hints) override {
    agreed_.hints = agree_on(*exchange_, agreed_.layout, hints).hints;
    direct_.set_hints(agreed_.hints);
    agreement_.forget();
    always_direct_ = false;
  }

  Hints hints_in_force() const override {
    Hints hints = agreed_.hints;
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
    std::vector<std::string> notes;
    const std::int64_t exchanged = counters_.exchanged_calls.load();
    const std::int64_t direct = counters_.direct_calls.load();
    if (exchanged + direct > 0) {
      notes.push_back(fmt::format(
          "{} collective calls went through aggregators; in {} each rank moved its own pieces, "
          "which are long enough",
          exchanged, direct));
    }
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

  StorageFile& storage() override { return *storage_; }
  Exchange& exchange() override { return *exchange_; }

 private:
  static constexpr Bytes end_unknown = std::numeric_limits<Bytes>::max();

  void decide_domains() {
    const StripeLayout& layout = agreed_.layout;
    const Hints& hints = agreed_.hints;
    FileDomains& domains = cast_.domains;
    domains.aggregators =
        choose_aggregators(layout, exchange_->nodes().nodes(), exchange_->size(),
                           exchange_->nodes().nodes() > 1 ? network_adapters() : 1, hints);
    if (layout.striped()) {
      const Bytes window = hints.buffer_size.value_or(
          std::min(striped_window_bytes, striped_window_units * layout.stripe_size));
      // A window holds at least one unit: of stripes too long for that, a part is the unit.
      domains.unit = std::min(layout.stripe_size, most_window_bytes);
      domains.units_per_window =
          std::clamp<Bytes>(window / domains.unit, 1, most_window_bytes / domains.unit);
    } else {
      domains.unit = std::clamp(hints.buffer_size.value_or(local_window_bytes), least_window_bytes,
                                most_window_bytes);
      domains.units_per_window = 1;
    }
  }

  Result<std::shared_ptr<const Schedule>> agree(const Access& access, bool writing) {
    const PathQuestion question{
        writing, agreed_.layout, expected_cost(agreed_.layout, writing),
        writing ? agreed_.hints.collective_write : agreed_.hints.collective_read};
    auto agreed = agreement_.agree(access, {writing, question, cast_.domains});
    if (!agreed) return agreed;
    // A page cache takes one piece from each rank at least as fast as an exchange could merge them,
    // whatever their sizes: as long as these views last, no call needs an agreement.
    always_direct_ = (*agreed)->path == Path::direct && agreement_.all_seamless() &&
                     !agreed_.layout.striped() &&
                     agreed_.hints.collective_write != Toggle::enable &&
                     agreed_.hints.collective_read != Toggle::enable;
    return agreed;
  }

  /// No rank depends on another's storage here, so no word is needed at the end: an error is the
  /// own one. The next agreement keeps the order of calls.
  Result<Bytes> go_direct(bool writing, const Access& access) {
    Counters::add(counters_.direct_calls, 1);
    return writing ? direct_.write(access) : direct_.read(access);
  }

  /// The first exchange of a file places the aggregators and makes the buffers. The same result on
  /// every rank.
  Status prepare_exchange(const Schedule& schedule) {
    if (board_) return {};
    if (no_board_.kind != ErrorKind::none) return tl::unexpected(no_board_);
    const NodeMap& nodes = exchange_->nodes();
    cast_.aggregator_ranks = assign_aggregators(
        domain_locality(schedule, cast_.domains, nodes.node_of_rank, nodes.nodes(), 8),
        nodes.ranks_of_node);
    auto board = Board::make(*exchange_, cast_.domains.aggregators, cast_.domains.window_bytes());
    if (!board) {
      no_board_ = board.error();
      return tl::unexpected(no_board_);
    }
    board_ = std::move(*board);
    const auto& served = cast_.aggregator_ranks;
    const bool serves = std::find(served.begin(), served.end(), exchange_->rank()) != served.end();
    const int depth =
        agreed_.hints.io_depth.value_or(agreed_.layout.striped() ? striped_io_depth : 0);
    if (serves && depth > 0) pool_ = std::make_unique<IoPool>(depth);
    return {};
  }

  RoundsContext context(const Schedule& schedule, bool writing) {
    return {*exchange_,  *board_,  *storage_,
            pool_.get(), codec_,   counters_,
            cast_,       schedule, expected_cost(agreed_.layout, writing),
            next_window_};
  }

  void finish_rounds(const Schedule& schedule) {
    next_window_ += schedule.rounds.size();
    Counters::add(counters_.exchanged_calls, 1);
    Counters::add(counters_.rounds, static_cast<std::int64_t>(schedule.rounds.size()));
  }

  static Error unpack(std::int64_t worst, const Error& mine) {
    Error error = mine;
    error.kind = static_cast<ErrorKind>(worst >> 32);
    error.os_errno = static_cast<int>(worst & 0xffffffff);
    if (mine.kind == ErrorKind::none) error.what = "a storage call of another rank failed";
    return error;
  }

  /// What a rank's exchanged call comes to, once every rank's storage calls are known.
  Result<Bytes> conclude(const Error& mine, const Access& access, Bytes end_of_file) {
    std::int64_t word[2] = {pack(mine), -end_of_file};
    exchange_->all_reduce(word, Reduce::max);
    if (word[0] != 0) return tl::unexpected(unpack(word[0], mine));
    if (-word[1] == end_unknown || access.length == 0) return access.length;
    const Bytes before_end = data_before(access.view, -word[1]);
    return std::clamp<Bytes>(before_end - access.start, 0, access.length);
  }

  std::shared_ptr<Exchange> exchange_;
  std::unique_ptr<StorageFile> storage_;
  Counters& counters_;
  Agreed agreed_;
  Cast cast_;
  MessageCodec codec_;
  CallAgreement agreement_;
  DirectIo direct_;
  std::unique_ptr<Board> board_;
  Error no_board_;  ///< Why there are no buffers to exchange through; the same on every rank.
  std::unique_ptr<IoPool> pool_;  ///< After what its jobs use: destroyed first.
  std::uint64_t next_window_ = 0;
  bool atomic_ = false;
  bool always_direct_ = false;  ///< Until views or hints change; the same on every rank.
};

}  // namespace

std::unique_ptr<CollectiveFile> CollectiveFile::open(std::shared_ptr<Exchange> exchange,
                                                     std::unique_ptr<StorageFile> storage,
                                                     const Hints& hints, Counters& counters) {
  return std::make_unique<EngineFile>(std::move(exchange), std::move(storage), hints, counters);
}

}  // namespace forebay
