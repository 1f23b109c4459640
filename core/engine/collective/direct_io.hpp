#pragma once

#include <mutex>
#include <span>
#include <vector>

#include "core/engine/collective/collective_file.hpp"
#include "core/plan/schedule.hpp"

namespace forebay {

/// One rank's own access to a file, without the others: independent calls, and collective calls in
/// which an exchange does not pay.
///
/// Reading joins pieces over gaps that cost less to read than another call (data sieving). Writing
/// makes one call per contiguous piece: a read-modify-write of the gaps could put back old bytes
/// over what another process wrote there meanwhile, so it is done under a lock and only where the
/// user asks for it (romio_ds_write=enable). See docs/decisions.
class DirectIo {
 public:
  DirectIo(StorageFile& storage, Counters& counters, StorageCost cost);

  void set_hints(const Hints& hints);
  void set_atomic(bool atomic) { atomic_ = atomic; }

  Result<Bytes> write(const Access& access);
  Result<Bytes> read(const Access& access);

 private:
  /// Data positions [begin, end) of the view, which lie in `span` of the file and are moved by one
  /// storage call, or by a few if they are one long piece.
  struct Batch {
    Bytes begin = 0;
    Bytes end = 0;
    Extent span;
    bool contiguous() const { return end - begin == span.length; }
  };
  /// When pieces are joined across a gap, and how far.
  struct Joining {
    Bytes most_gap = 0;   ///< Largest gap worth reading, bytes.
    Bytes most_span = 0;  ///< Longest span with gaps, bytes.
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

  static bool next_batch(TreeCursor& walk, Bytes data_end, const Joining& joining, Batch& batch);
  Status write_contiguous(Call& call, const Batch& batch);
  Status write_sieved(Call& call, const Batch& batch);
  Result<Bytes> read_contiguous(Call& call, const Batch& batch);
  Result<Bytes> read_sieved(Call& call, const Batch& batch);
  Result<Bytes> write_batches(const Access& access);
  Result<Bytes> read_batches(const Access& access);

  StorageFile& storage_;
  Counters& counters_;
  StorageCost cost_;
  Hints hints_;
  bool atomic_ = false;
  std::mutex locking_;  ///< Held by a call that holds a lock on a range of the file.
  std::mutex mutex_;
  std::vector<std::vector<std::byte>> spare_;  ///< Guarded by mutex_.
};

}  // namespace forebay
