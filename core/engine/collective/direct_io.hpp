#pragma once

#include <vector>

#include "core/engine/collective/collective_file.hpp"
#include "core/plan/schedule.hpp"

namespace forebay {

/// One rank's own access to a file, without the others: independent calls, and collective calls in
/// which an exchange does not pay.
///
/// Reading joins pieces over gaps that cost less to read than another call (data sieving). Writing
/// makes one call per contiguous piece: a read-modify-write of the gaps could put back old bytes over
/// what another process wrote there meanwhile, so it is done under a lock and only where the user
/// asks for it (romio_ds_write=enable). See docs/decisions.
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

  static bool next_batch(TreeCursor& walk, Bytes data_end, const Joining& joining, Batch& batch);
  Status write_contiguous(const Access& access, const Batch& batch, TreeCursor& memory);
  Status write_sieved(const Access& access, const Batch& batch, TreeCursor& memory);
  Result<Bytes> read_contiguous(const Access& access, const Batch& batch, TreeCursor& memory);
  Result<Bytes> read_sieved(const Access& access, const Batch& batch, TreeCursor& memory);
  Result<Bytes> write_batches(const Access& access);
  Result<Bytes> read_batches(const Access& access);
  std::span<std::byte> bounce(Bytes size);

  StorageFile& storage_;
  Counters& counters_;
  StorageCost cost_;
  Hints hints_;
  bool atomic_ = false;
  std::vector<std::byte> bounce_;
};

}  // namespace forebay
