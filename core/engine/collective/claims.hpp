#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>

#include "core/model/error.hpp"
#include "core/model/extent.hpp"

namespace forebay {

/// Which rank may hold bytes of a file in its log, as one of the ranks sees it: a table of granules
/// of the file, each of one rank or of none, and a place where a rank is asked to bring bytes to
/// the file. So ranks agree on who writes where without a call that all of them make, and those who
/// are asked need not be in a call: a thread of theirs answers.
///
/// Granules whose numbers differ by the size of the table share a place in it. That costs
/// questions, not correctness.
///
/// Thread-safe, but for what is said of ask(). Errors: io, where whoever keeps the table is gone;
/// what then cannot be told to it is that of a rank that is gone, too.
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

  /// Part of an extent that belongs to another rank.
  struct Foreign {
    int rank = 0;
    Extent extent;  ///< Whole granules.
  };

  virtual ~Claims() = default;
  Claims(const Claims&) = delete;
  Claims& operator=(const Claims&) = delete;

  /// The first part of `extent` that belongs to another rank; none if there is none.
  virtual Result<std::optional<Foreign>> foreign(Extent extent) = 0;
  /// Makes `extent` this rank's, up to the first part that is foreign, which comes back. If there
  /// is none, end() is not below its end from now on.
  virtual Result<std::optional<Foreign>> claim(Extent extent) = 0;
  /// What of this is this rank's is nobody's again.
  virtual void release(Extent extent) = 0;
  /// The same of all, and this rank holds no byte that would count in end().
  virtual void release_all() = 0;
  /// Whether any granule up to `end` shares its place with another one.
  bool shares_places(Bytes end) const { return end > places * granule_; }

  /// Asks a rank, and waits until it has answered; at once if it answers nobody. Not from several
  /// threads at a time. Error: io if the rank is gone, else what it said.
  virtual Answer ask(int rank, const Question& question) = 0;
  /// The first rank from `from` on that answers questions; none if there is none.
  virtual Result<std::optional<int>> next_open(int from) = 0;

  /// This rank, of the process of that number, answers from now on. To be called before it claims
  /// anything.
  virtual void open(std::int64_t process) = 0;
  /// Answers what is asked, and waits for more, until close() was called. Who asks later hears that
  /// there is nobody.
  virtual void answer(const Answering& answering) = 0;
  virtual void close() = 0;

  /// No rank will claim anything any more, nor holds anything, and all know it: from now on that is
  /// what this rank is told, without asking anybody.
  virtual void leave() {}

  /// Behind the last byte that a rank may hold: told by each rank of its own.
  virtual Result<Bytes> end() = 0;
  virtual void set_end(Bytes end) = 0;

  /// Bits that all ranks see: set and cleared by this rank as it returns, by others no later than
  /// when this rank opens, claims what it did not have, or answers a question that came later.
  virtual std::uint32_t flags() const = 0;
  virtual void set_flag(std::uint32_t flag) = 0;
  virtual void clear_flag(std::uint32_t flag) = 0;
  /// How often a write found another rank's bytes in its granule; counts one more.
  virtual std::uint32_t count_conflict() = 0;

 protected:
  /// Places of the table. With granules of 512 KiB, 128 GiB of a file have places of their own.
  static constexpr std::int64_t places = std::int64_t{256} * 1024;

  explicit Claims(Bytes granule) : granule_(granule) {}
  Bytes granule() const { return granule_; }
  /// Numbers of the granules that have bytes of an extent. No more than there are places: others
  /// would only meet the same places again.
  struct Granules {
    std::int64_t first = 0;
    std::int64_t end = 0;  ///< Behind the last.
  };
  Granules granules_of(Extent extent) const {
    const std::int64_t first = extent.offset / granule_;
    const std::int64_t end = extent.end() / granule_ + (extent.end() % granule_ != 0 ? 1 : 0);
    return {first, std::min(end, first + places)};
  }
  static std::size_t place_of(std::int64_t granule) {
    return static_cast<std::size_t>(granule % places);
  }

 private:
  const Bytes granule_;
};

}  // namespace forebay
