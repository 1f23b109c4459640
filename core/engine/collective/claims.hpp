#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>

#include "core/engine/collective/bell.hpp"
#include "core/engine/collective/exchange.hpp"
#include "core/model/error.hpp"
#include "core/model/extent.hpp"

namespace forebay {

/// Which rank of a host may hold bytes of a file in its log, in memory that the ranks share: a
/// table of granules of the file, each of one rank or of none, and a place where a rank is asked
/// to bring bytes to the file. So ranks agree on who writes where without a message, and those who
/// are asked need not be in a call: a thread of theirs answers.
///
/// Granules whose numbers differ by the size of the table share a place in it. That costs
/// questions, not correctness.
class Claims {
 public:
  /// What a rank wants of another one's bytes.
  enum class Wish : std::uint32_t {
    none,
    read,           ///< To be in the file.
    write,          ///< The same, and to be written by who asks.
    write_through,  ///< All bytes to be in the file for good, and no log from now on.
  };
  struct Question {
    Wish wish = Wish::none;
    Extent extent = {};
  };
  struct Answer {
    Status status = {};
    std::uint64_t epoch = 0;  ///< What the rank writes from now on belongs to this one or later.
    bool was_dirty = false;   ///< There was something to bring.
  };
  using Answering = std::function<Answer(const Question&)>;

  /// What the shared memory takes, for so many ranks.
  static Bytes bytes(int ranks);

  /// In `memory`: zero-filled before the first rank came, and outliving this.
  Claims(std::span<std::byte> memory, int ranks, int rank, Bytes granule);

  /// Part of an extent that belongs to another rank.
  struct Foreign {
    int rank = 0;
    Extent extent;  ///< Whole granules.
  };
  /// The first part of `extent` that does; none if there is none.
  std::optional<Foreign> foreign(Extent extent) const;
  /// Makes `extent` this rank's, up to the first part that is foreign, which comes back.
  std::optional<Foreign> claim(Extent extent);
  /// What of this is this rank's is nobody's again.
  void release(Extent extent);
  void release_all();
  /// Granules around `extent`.
  Extent granules(Extent extent) const;
  /// Whether any granule up to `end` shares its place with another one.
  bool shares_places(Bytes end) const;

  /// Asks a rank, and waits until it has answered; at once if it answers nobody. Not from several
  /// threads at a time. Error: io if the rank is gone, else what it said.
  Answer ask(int rank, const Question& question);

  /// This rank, of the process of that number, answers from now on. To be called before it claims
  /// anything.
  void open(std::int64_t process);
  /// Answers what is asked, and waits for more, until close() was called. Who asks later hears that
  /// there is nobody.
  void answer(const Answering& answering);
  void close();

  /// Behind the last byte that a rank may hold: told by each rank of its own.
  Bytes end() const;
  void raise_end(Bytes end);
  void reset_end();

  /// Bits that all ranks see.
  std::uint32_t flags() const;
  void set_flag(std::uint32_t flag);
  void clear_flag(std::uint32_t flag);
  /// How often a write found another rank's bytes in its granule; counts one more.
  std::uint32_t count_conflict();

 private:
  struct Header;
  struct Place;
  struct Slot;

  Place& place(int rank) const;
  Slot& slot(int owner, int asker) const;
  std::atomic<std::uint32_t>& owner_of(std::int64_t granule) const;

  const std::span<std::byte> memory_;
  const int ranks_;
  const int rank_;
  const Bytes granule_;
};

}  // namespace forebay
