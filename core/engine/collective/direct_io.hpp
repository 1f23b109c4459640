#pragma once

#include <cstddef>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "core/engine/collective/collective_file.hpp"
#include "core/engine/collective/sieve_watch.hpp"
#include "core/plan/schedule.hpp"
#include "core/plan/write_sieving.hpp"

namespace forebay {

/// One rank's own access to a file, without the others: independent calls, and collective calls in
/// which an exchange does not pay.
///
/// Reading joins pieces over gaps that cost less to read than another call (data sieving). Writing
/// makes one call per contiguous piece, unless ranks agreed that they may sieve: then pieces that
/// are many and close together are put into their span, which is read and written back under an
/// exclusive lock, and all others are written under a shared one. See docs/decisions.
class DirectIo {
 public:
  /// `watch` is of the same file and outlives this object.
  DirectIo(StorageFile& storage, Counters& counters, StorageCost cost, const SieveWatch& watch);

  void set_hints(const Hints& hints);
  void set_atomic(bool atomic) { atomic_ = atomic; }
  /// Writes may be sieved, by this cost; or none are. The same on every rank but for the cost.
  void set_sieving(const std::optional<SievingCost>& cost) { sieving_ = cost; }

  /// Whether sieving would pay for writes through `view`, looking at what comes first in it.
  bool sieving_helps(const TiledTree& view, const SievingCost& cost) const;

  Result<Bytes> write(const Access& access);
  /// What came of a part that was written but for its ends.
  struct Inside {
    Error error;
    /// The data of the ends, one behind the other; null where there was no memory for them.
    std::unique_ptr<std::byte[]> ends;
  };
  /// Writes the whole granules of `access`, which is one piece of the file.
  Inside write_inside(const Access& access, Bytes granule);
  Result<Bytes> read(const Access& access);

 private:
  /// Data positions [begin, end) of the view, which lie in `span` of the file and are moved by one
  /// storage call, or by a few if they are one long piece.
  struct Batch {
    Bytes begin = 0;
    Bytes end = 0;
    Extent span;
    std::int64_t pieces = 0;
    bool contiguous() const { return end - begin == span.length; }
  };
  /// When pieces are joined across a gap, and how far.
  struct Joining {
    Bytes most_gap = 0;                               ///< Largest gap worth reading, bytes.
    Bytes most_span = 0;                              ///< Longest span with gaps, bytes.
    int most_runs = std::numeric_limits<int>::max();  ///< Regular series of pieces looked at.
  };

  /// One call's buffer for scattered memory and for spans with gaps; taken from those that earlier
  /// calls left, for several threads of a program may be in calls of one file at a time.
  class Bounce {
   public:
    explicit Bounce(DirectIo& owner);
    ~Bounce();
    Bounce(const Bounce&) = delete;
    Bounce& operator=(const Bounce&) = delete;
    std::span<std::byte> take(Bytes size);

   private:
    DirectIo& owner_;
    std::vector<std::byte> bytes_;
  };

  /// What one call works with, apart from the file.
  struct Call {
    const Access& access;
    TreeCursor memory;
    Bounce bounce;
  };

  Bytes write_buffer() const;
  Joining write_joining(const SievingCost& cost, Bytes offset) const;
  bool worth_sieving(const Batch& batch, const SievingCost& cost) const;
  static bool next_batch(TreeCursor& walk, Bytes data_end, const Joining& joining, Batch& batch);
  Status write_contiguous(Call& call, const Batch& batch);
  Status write_pieces(Call& call, const Batch& batch);
  Result<Bytes> write_named(TreeCursor& memory, Bytes length, Bytes offset);
  Status write_sieved(Call& call, const Batch& batch);
  Result<Bytes> read_contiguous(Call& call, const Batch& batch);
  Result<Bytes> read_sieved(Call& call, const Batch& batch);
  Status write_batches(const Access& access, Bytes begin, Bytes end);
  Result<Bytes> read_batches(const Access& access);

  StorageFile& storage_;
  Counters& counters_;
  StorageCost cost_;
  const SieveWatch& watch_;
  Hints hints_;
  std::optional<SievingCost> sieving_;
  bool atomic_ = false;
  std::mutex locking_;  ///< Held by a call that holds a lock on a range of the file.
  std::mutex mutex_;
  std::vector<std::vector<std::byte>> spare_;  ///< Guarded by mutex_.
};

}  // namespace forebay
