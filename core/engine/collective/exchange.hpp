#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/model/error.hpp"
#include "core/model/extent.hpp"

namespace forebay {

struct Bell;
class Board;
class CallHistory;

/// Which ranks share memory. Node ids are dense from 0, in order of their lowest rank.
struct NodeMap {
  std::vector<int> node_of_rank;
  std::vector<std::vector<int>> ranks_of_node;  ///< Ascending.
  int nodes() const { return static_cast<int>(ranks_of_node.size()); }
};

/// Memory that all ranks of one node see. Zero-filled when made.
class SharedRegion {
 public:
  virtual ~SharedRegion() = default;
  virtual std::span<std::byte> bytes() const = 0;
};

enum class Reduce { min, max, sum };

inline std::int64_t reduced(std::int64_t one, std::int64_t other, Reduce op) {
  switch (op) {
    case Reduce::min:
      return std::min(one, other);
    case Reduce::max:
      return std::max(one, other);
    case Reduce::sum:
      break;
  }
  return one + other;
}

/// How the ranks of one open file talk to each other: the one seam behind which MPI is called by
/// the engine. MpiExchange is compiled once per MPI ABI; ThreadExchange is its in-process twin, in
/// which ranks are threads. Every call is made by the rank's own thread, never by an I/O thread. A
/// failure of the network is not survivable and is handled by the MPI library's own means.
class Exchange {
 public:
  virtual ~Exchange() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual const NodeMap& nodes() const = 0;
  /// On which machine each rank really runs, also where nodes are emulated: ranks of one host can
  /// share memory by its name. Numbers are dense from 0, in order of the host's lowest rank.
  virtual const std::vector<int>& host_of_rank() const = 0;
  /// Whether another rank runs on this one's.
  bool shares_host(int other) const {
    return host_of_rank()[static_cast<std::size_t>(other)] ==
           host_of_rank()[static_cast<std::size_t>(rank())];
  }
  int ranks_on_host() const {
    const int mine = host_of_rank()[static_cast<std::size_t>(rank())];
    return static_cast<int>(std::ranges::count(host_of_rank(), mine));
  }
  /// All of them do.
  bool on_one_host() const { return ranks_on_host() == size(); }
  /// Some host has more ranks than cores for them (hardware.hpp): waiting must not spin. The same
  /// on all ranks.
  virtual bool cores_are_shared() const = 0;

  // Collective over all ranks, same order everywhere.
  virtual void barrier() = 0;
  /// Element-wise reduction, in place; the result is on every rank.
  virtual void all_reduce(std::span<std::int64_t> values, Reduce op) = 0;
  /// Every rank's contribution, all of one size, by rank into `all` (size() * mine.size() bytes).
  virtual void all_gather(std::span<const std::byte> mine, std::span<std::byte> all) = 0;
  /// Every rank's contribution, of any size, by rank.
  virtual std::vector<std::vector<std::byte>> all_gather_varying(
      std::span<const std::byte> mine) = 0;
  /// The sum of `value` over all lower ranks.
  virtual std::int64_t exclusive_sum(std::int64_t value) = 0;

  /// A region of `size` bytes common to the ranks of this rank's node; collective over all ranks.
  /// An error (the same on every rank) if any node could not make its region.
  virtual Result<std::unique_ptr<SharedRegion>> share(Bytes size) = 0;

  // Messages. The buffer stays untouched until done. Matching is by (peer, tag), in order.
  using Ticket = std::uint64_t;
  /// A synchronous send: it is complete only when the receiver has posted the matching receive.
  /// That is the credit: a sender never has more messages under way than it has buffers.
  virtual Ticket send(int to, int tag, std::span<const std::byte> data) = 0;
  /// `data` is the exact size of the message, or an upper bound.
  virtual Ticket receive(int from, int tag, std::span<std::byte> data) = 0;
  /// True once complete; the ticket is then gone. `received` gets the size of a received message.
  virtual bool done(Ticket ticket, Bytes* received = nullptr) = 0;
  /// What is rung for `rank` whenever a message from or to it has moved, and by others as they
  /// like; null where nothing is, and who waits has to look again and again. On this rank's host.
  virtual Bell* bell(int /*rank*/) { return nullptr; }

  /// What its ranks know of each other's calls, for the next file over this exchange; null at
  /// first.
  const std::shared_ptr<CallHistory>& history() const { return history_; }
  void keep(std::shared_ptr<CallHistory> history) { history_ = std::move(history); }

  /// Buffers that a file left for the next one; null if none did. The same on every rank.
  std::shared_ptr<Board> take_board() { return std::exchange(board_, nullptr); }
  void leave(std::shared_ptr<Board> board) { board_ = std::move(board); }

 private:
  std::shared_ptr<CallHistory> history_;
  std::shared_ptr<Board> board_;
};

}  // namespace forebay
