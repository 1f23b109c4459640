#pragma once

#include <chrono>
#include <deque>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "core/engine/collective/board.hpp"
#include "core/engine/collective/copy_runs.hpp"
#include "core/engine/collective/exchange.hpp"
#include "core/engine/collective/io_pool.hpp"
#include "core/engine/collective/message_codec.hpp"
#include "core/engine/collective/scoped_nanoseconds.hpp"
#include "core/model/counters.hpp"
#include "core/plan/file_domains.hpp"
#include "core/plan/schedule.hpp"
#include "core/storage/file.hpp"

namespace forebay {

/// Who does what for one open file: fixed from its first exchanged call on, so that overlapping
/// writes of successive calls pass through the same aggregator in order.
struct Cast {
  FileDomains domains;
  std::vector<int> aggregator_ranks;  ///< The rank that serves each domain class.

  /// The rank of a node that handles the messages between its node and an aggregator elsewhere:
  /// spread over the ranks, so that no one rank is the node's bottleneck.
  static int courier(const std::vector<int>& ranks_of_node, int aggregator) {
    return ranks_of_node[static_cast<std::size_t>(aggregator) % ranks_of_node.size()];
  }
};

/// What the rounds of one collective call work with. Everything outlives the call.
struct RoundsContext {
  Exchange& exchange;
  Board& board;
  StorageFile& storage;
  IoPool* pool;  ///< nullptr: storage calls are made in line.
  MessageCodec& codec;
  Counters& counters;
  const Cast& cast;
  const Schedule& schedule;
  StorageCost cost;
  /// A window's worth of memory on an aggregator that gets messages, for when there is no more.
  std::span<std::byte> reserve;
  std::uint64_t first_window;  ///< The number of the call's first window of the board.
};

/// What both directions share: where a rank's pieces of a round go, and how a rank waits while it
/// keeps serving as aggregator and courier.
///
/// Each rank runs one loop over the rounds and, whenever it has to wait, makes progress on its
/// duties towards others. No rank ever waits for a slot without serving its own, so the loops
/// cannot deadlock; no collective call is made between the first and the last round.
class Rounds {
 public:
  virtual ~Rounds() = default;
  Rounds(const Rounds&) = delete;
  Rounds& operator=(const Rounds&) = delete;

  /// The first failure of this rank's storage calls; kind none if there was none.
  const Error& error() const { return error_; }

 protected:
  explicit Rounds(const RoundsContext& context);

  static constexpr Bytes no_end = std::numeric_limits<Bytes>::max();

  int my_rank() const { return context_.exchange.rank(); }
  const RankPart& my_part() const {
    return context_.schedule.parts[static_cast<std::size_t>(my_rank())];
  }
  std::size_t rounds() const { return context_.schedule.rounds.size(); }
  int aggregators() const { return context_.cast.domains.aggregators; }
  std::uint64_t window_number(std::size_t round) const { return context_.first_window + round; }
  int node_of(int rank) const {
    return context_.exchange.nodes().node_of_rank[static_cast<std::size_t>(rank)];
  }
  int aggregator_rank(int aggregator) const {
    return context_.cast.aggregator_ranks[static_cast<std::size_t>(aggregator)];
  }
  bool is_local(int aggregator) const {
    return node_of(aggregator_rank(aggregator)) == node_of(my_rank());
  }
  /// The domain class that this rank serves, or -1.
  int my_domain() const { return my_domain_; }
  /// Aggregators elsewhere for which this rank carries its node's messages.
  const std::vector<int>& errands() const { return errands_; }
  const std::vector<int>& ranks_of(int node) const {
    return context_.exchange.nodes().ranks_of_node[static_cast<std::size_t>(node)];
  }

  /// The extents of the file in window (aggregator, round), in file order.
  std::vector<Extent> window(int aggregator, std::size_t round) const;
  /// Bytes of `rank` in window (aggregator, round) below file offset `limit`.
  Bytes bytes_of(int rank, int aggregator, std::size_t round, Bytes limit = no_end) const;
  /// The same for all ranks of `node`.
  Bytes bytes_of_node(int node, int aggregator, std::size_t round, Bytes limit = no_end) const;
  /// The payload of the message between `node` and an aggregator elsewhere: the pieces of the
  /// node's ranks one behind the other. Where they are more than the window, because ranks move the
  /// same bytes, it is the window's image, in which each byte has one place.
  Bytes message_bytes(int node, int aggregator, std::size_t round, Bytes limit = no_end) const;
  bool message_is_image(int node, int aggregator, std::size_t round) const;

  /// Moves this rank's pieces of `round` between the program's buffer and all slots of the round.
  void move_pieces(TreeCursor& memory, std::size_t round, Direction direction);

  /// Moves the pieces of all ranks of `node` between a window image and a message, below `limit`.
  void move_message(int node, std::size_t round, std::byte* image, std::byte* message,
                    Direction direction, Bytes limit = no_end);
  /// The same where the message is an image.
  void move_image(int node, std::size_t round, std::byte* image, std::byte* message,
                  Direction direction);

  /// Serves duties once; true if anything moved.
  virtual bool progress() = 0;
  /// Messages are under way, of whose completion no bell tells.
  virtual bool messages_pending() const = 0;

  /// Returns once `ready()`; serves duties meanwhile.
  template <typename Ready>
  void wait_until(Ready ready);

  void fail(const Error& error);
  /// That many bytes, zeros; none if there is no memory for them, and then the call has failed. To
  /// leave the call would leave other ranks waiting for this one.
  std::optional<std::vector<std::byte>> allocate(Bytes bytes);
  void count_message(Bytes plain_bytes, Bytes wire_bytes);

  /// Runs `job` in the background if there is a pool, else at once.
  void run_storage(std::function<void()> job);

  RoundsContext context_;

 private:
  void sleep(std::uint32_t seen);

  int my_domain_ = -1;
  std::vector<int> errands_;
  /// How long to look again before sleeping.
  std::chrono::nanoseconds patience_{0};
  std::chrono::nanoseconds between_looks_{0};  ///< For messages.
  Error error_;
};

template <typename Ready>
void Rounds::wait_until(Ready ready) {
  const Bell& bell = context_.board.bell(context_.board.local_rank());
  using Clock = std::chrono::steady_clock;
  std::optional<Clock::time_point> idle_since;
  for (;;) {
    const std::uint32_t seen = bell.rings.load();
    const bool moved = progress();
    if (ready()) return;
    if (moved) {  // One duty done may have made room for another.
      idle_since.reset();
      continue;
    }
    const auto now = Clock::now();
    if (!idle_since) idle_since = now;
    if (now - *idle_since < patience_) {
      pause_processor();
    } else {
      sleep(seen);
    }
  }
}

/// A collective write.
class WriteRounds final : public Rounds {
 public:
  explicit WriteRounds(const RoundsContext& context);
  ~WriteRounds() override;
  /// Moves everything; on return this rank's duties are done and its node's slots are free.
  void run(const TiledTree& memory);

 private:
  struct Errand;
  struct Incoming;
  struct Storing;

  bool progress() override;
  bool messages_pending() const override;
  bool progress_errand(Errand& errand);
  /// A slot of this node is empty again.
  void release(int aggregator, std::uint64_t number);
  bool post_receives();
  bool post_receive(int node, Bytes bytes);
  /// A message for which there was no memory is still on its way.
  bool discarding();
  bool collect();
  bool finish_storing();
  void store(std::size_t round);
  void write_window(std::size_t round, Storing& storing);
  Status rewrite_with_holes(Extent extent, const std::byte* origin);

  const bool in_turn_;  ///< One aggregator of the node writes at a time.
  std::vector<Errand> errand_states_;
  std::deque<Incoming> incoming_;
  std::deque<std::unique_ptr<Storing>> storing_;
  std::size_t next_posted_ = 0;                 ///< The round of which messages are awaited next,
  int next_node_ = 0;                           ///< from this node on.
  std::optional<Exchange::Ticket> discarding_;  ///< Comes into the reserve.
  std::size_t next_collected_ = 0;
};

/// A collective read.
class ReadRounds final : public Rounds {
 public:
  explicit ReadRounds(const RoundsContext& context);
  ~ReadRounds() override;
  /// Moves everything. Returns the lowest offset found to be beyond the end of the file, no_end if
  /// none was.
  Bytes run(const TiledTree& memory);

 private:
  struct Errand;
  struct Fetching;
  struct Outgoing;

  bool progress() override;
  bool messages_pending() const override;
  bool progress_errand(Errand& errand);
  /// Takes a message that arrived in front of and in `slot`. Returns up to where the slot is valid.
  Bytes accept(std::byte* slot, Bytes received, Bytes room);
  bool issue();
  bool finish_fetching();
  bool finish_sends();
  void send(Outgoing& outgoing, int peer);
  void fetch(std::size_t round, Fetching& fetching);

  std::vector<Errand> errand_states_;
  std::deque<std::unique_ptr<Fetching>> fetching_;
  std::deque<Outgoing> outgoing_;
  std::size_t next_issued_ = 0;
};

}  // namespace forebay
