#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/engine/cache/bell.hpp"
#include "core/engine/collective/exchange.hpp"

namespace forebay {

/// The buffers through which the ranks of one node and the aggregators meet: for each aggregator of
/// the file, wherever it runs, a few slots of one window each in node-shared memory.
///
/// Where the aggregator is on this node, a slot is an image of its window and ranks put their
/// pieces where they belong in the file. Where it is elsewhere, a slot is the message between this
/// node and the aggregator: the pieces of each rank of the node one behind the other, or an image
/// too where they would not fit because ranks move the same bytes.
///
/// A slot goes round: it is `filled` (by the ranks when writing, by the aggregator or the message
/// when reading), then `released` by the other side. Both counters only grow, by ranks_on_node()
/// per use in all, so no use needs a reset: use u of a slot may be filled once released == u * L
/// and is full once filled == (u + 1) * L. Window number w (counted from when the board was made,
/// the same on all ranks) uses slot w % depth for the (w / depth)-th time.
///
/// A file leaves its board to the next one over the same exchange, which need not make one: to make
/// one and to meet its pages for the first time takes as long as a few MiB of data.
class Board {
 public:
  static constexpr int depth = 2;  ///< Double buffering.

  /// Collective over the exchange.
  static Result<std::shared_ptr<Board>> make(Exchange& exchange, int aggregators,
                                             Bytes window_bytes);

  /// Whether it is as make() would make it.
  bool fits(int aggregators, Bytes window_bytes) const {
    return aggregators == aggregators_ && window_bytes == window_bytes_;
  }
  /// Whether it is small enough to be kept while no file needs it.
  bool worth_keeping() const { return region_->bytes().size() <= most_kept_bytes; }

  /// Windows that calls before this one used; the same on every rank.
  std::uint64_t next_window() const { return next_window_; }
  void pass_windows(std::size_t count) { next_window_ += count; }

  int ranks_on_node() const { return ranks_on_node_; }
  /// This rank's place among the ranks of its node.
  int local_rank() const { return local_rank_; }

  /// Page-aligned, as storage likes it. Before it lie `header_room` bytes in which a message that
  /// carries the window's pieces has its header, so that it can be received in place.
  std::byte* data(int aggregator, std::uint64_t window) const;
  static constexpr Bytes header_room = 4096;

  void fill(int aggregator, std::uint64_t window, int amount);
  void release(int aggregator, std::uint64_t window, int amount);
  bool full(int aggregator, std::uint64_t window) const;
  bool free(int aggregator, std::uint64_t window) const;
  bool all_free(std::uint64_t window) const;  ///< For every aggregator.

  /// Offsets in the file from which on a slot that was read holds nothing: the file ended there.
  void set_valid_until(int aggregator, std::uint64_t window, Bytes offset);
  Bytes valid_until(int aggregator, std::uint64_t window) const;

  /// The turn to write among this node's ranks, for storage that takes one writer at a time: who
  /// would wait inside the kernel goes on with its pieces instead. Held as long as it lives;
  /// false if another rank has it.
  class WritingTurn {
   public:
    explicit WritingTurn(const Board& board) : board_(board), mine_(take()) {}
    ~WritingTurn() {
      // Who was refused may be asleep by now.
      if (mine_ && board_.writing_->exchange(free_turn) == awaited_turn) board_.ring_mates();
    }
    WritingTurn(const WritingTurn&) = delete;
    WritingTurn& operator=(const WritingTurn&) = delete;
    explicit operator bool() const { return mine_; }

   private:
    static constexpr std::uint32_t free_turn = 0;
    static constexpr std::uint32_t taken_turn = 1;
    static constexpr std::uint32_t awaited_turn = 2;  ///< Taken, and somebody was refused.

    bool take() const {
      std::atomic<std::uint32_t>& turn = *board_.writing_;
      for (std::uint32_t seen = turn.load(); seen != awaited_turn;) {
        const std::uint32_t next = seen == free_turn ? taken_turn : awaited_turn;
        if (turn.compare_exchange_weak(seen, next)) return next == taken_turn;
      }
      return false;
    }

    const Board& board_;
    const bool mine_;
  };

  /// The exchange's where it has bells: a rank that waits for both then hears of both.
  Bell& bell(int local_rank) const { return *bells_[static_cast<std::size_t>(local_rank)]; }
  /// All ranks of this node but this one.
  void ring_mates() const;

 private:
  struct alignas(64) Slot {
    std::atomic<std::uint64_t> filled;
    std::atomic<std::uint64_t> released;
    std::atomic<Bytes> valid_until;
  };
  static constexpr std::size_t most_kept_bytes = std::size_t{64} << 20;  ///< Of a node.

  Board(int aggregators, Bytes window_bytes)
      : aggregators_(aggregators), window_bytes_(window_bytes) {}
  Slot& slot(int aggregator, std::uint64_t window) const;

  const int aggregators_;
  const Bytes window_bytes_;
  std::uint64_t next_window_ = 0;
  std::unique_ptr<SharedRegion> region_;
  std::vector<Bell*> bells_;
  std::atomic<std::uint32_t>* writing_ = nullptr;
  Slot* slots_ = nullptr;
  std::byte* buffers_ = nullptr;
  Bytes slot_bytes_ = 0;
  int ranks_on_node_ = 1;
  int local_rank_ = 0;
};

}  // namespace forebay
