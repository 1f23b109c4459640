#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/engine/collective/exchange.hpp"
#include "core/engine/collective/file_handles.hpp"
#include "core/engine/collective/held_back.hpp"
#include "core/engine/collective/timed_file.hpp"
#include "core/model/counters.hpp"
#include "core/model/error.hpp"
#include "core/model/hints.hpp"
#include "core/model/strided_tree.hpp"
#include "core/storage/file.hpp"

namespace forebay {

/// One rank's part of one data call: `length` bytes from data position `start` of the file view, to
/// or from the buffer that `memory` describes (its displacement is the address as an integer, so
/// that MPI_BOTTOM with absolute types works; its data position 0 pairs with `start`).
struct Access {
  TiledTree view;
  Bytes start = 0;
  TiledTree memory;
  Bytes length = 0;
};

/// Who may write to a file through MPI while it is open, beside the ranks that opened it.
enum class Writers {
  ranks,  ///< Nobody: they are the whole program, on one host, one thread of each in MPI at a time.
  others,  ///< Somebody, as far as is known.
};

/// New values of hints that came too late: what was before stays. The same on every rank.
struct LateHints {
  /// Others, or other buffers, have moved data already: the order of overlapping writes depends on
  /// them.
  bool aggregators = false;
  bool cache = false;  ///< Its logs go by what was said when the file was opened.
};

/// A file opened by several ranks together: carries out data calls, collective and independent.
/// Every collective call must be made by every rank of the exchange in the same order. No call
/// hangs because another rank failed. A storage error of a collective call comes back on all ranks,
/// as the most severe one. Where ranks need not talk in a call, it comes back at once on the rank
/// it concerns, and on the others in their next collective write in which ranks talk, or in sync.
class CollectiveFile {
 public:
  /// Takes `exchange` and `storage` over. Collective. `counters` must outlive the file. `clock`
  /// times the storage calls, by whose cost later ones are planned. Where a process has other
  /// handles of the file, too, `handles` are all of them.
  static std::unique_ptr<CollectiveFile> open(std::shared_ptr<Exchange> exchange,
                                              std::unique_ptr<StorageFile> storage,
                                              const Hints& hints, Counters& counters,
                                              NanosecondClock clock = steady_nanoseconds(),
                                              Writers writers = Writers::others,
                                              std::shared_ptr<FileHandles> handles = nullptr);
  virtual ~CollectiveFile() = default;

  // Each returns the bytes written or read by this rank; a read returns fewer than asked only at
  // the end of the file.
  virtual Result<Bytes> write_all(const Access& access) = 0;  ///< Collective.
  virtual Result<Bytes> read_all(const Access& access) = 0;   ///< Collective.
  virtual Result<Bytes> write(const Access& access) = 0;      ///< Independent.
  virtual Result<Bytes> read(const Access& access) = 0;       ///< Independent.

  /// When the program sets a view, ranks choose whether writes may be sieved under the new views:
  /// each asks for its vote, and the highest of all ranks' is told with view_changed.
  virtual std::int64_t vote_on_sieving(const TiledTree& view) = 0;

  /// To be called when all ranks have set their views (collective, but makes no message): what was
  /// agreed of the old views does not hold for the new ones.
  virtual void view_changed(std::int64_t highest_vote) = 0;

  /// MPI_File_set_atomicity. In atomic mode each call locks what it touches and collective calls
  /// are carried out rank by rank. Collective.
  virtual void set_atomic(bool atomic) = 0;

  /// Whether what is written may wait in a write-behind cache; the same on every rank.
  virtual bool holds_back() const = 0;

  /// Nothing that this rank wrote is held back from the file. Once it has returned on all ranks,
  /// the file is what it would be without a write-behind cache. Collective.
  virtual Status flush() = 0;

  /// From now on nothing is held back, for `reason`. To be called by all.
  virtual Status hold_nothing_back(const std::string& reason) = 0;

  /// No data call follows on this rank; others may still be in theirs. `discard`: the file is about
  /// to be deleted.
  virtual Status close(bool discard) = 0;

  /// As close(false), but where hints ask for it, what is held back goes on to the file after it:
  /// then not null, on all ranks. Collective.
  virtual Result<std::unique_ptr<HeldBack>> close_early() = 0;

  /// All that is held back goes to the file, whatever hints ask for. The file stays as usable as
  /// before, and nothing is held back any more. Collective.
  virtual Status close_together() = 0;

  /// MPI_File_sync: what any rank wrote is durable and visible to all. Collective.
  virtual Status sync() = 0;

  /// New values of hints for the open file. Returns which of them came too late. Collective.
  virtual LateHints set_hints(const Hints& hints) = 0;

  /// What is really in force: aggregators, buffer sizes and striping as chosen, the cache as
  /// opened.
  virtual Hints hints_in_force() const = 0;

  /// The ranks that serve as aggregators; empty until a call was exchanged.
  virtual std::vector<int> aggregators() const = 0;

  /// Decisions that a person who asks "why is it so fast or slow" should know. One rank's tell
  /// enough.
  virtual std::vector<std::string> notes() const = 0;

  /// What only this rank may know of: what its part of the cache met, to its close; of one that
  /// goes on after close_early(), until then.
  virtual std::vector<std::string> own_notes() const = 0;

  /// The worst error of this rank's collective writes that others do not know of; kind none if they
  /// know all. To be told when the file is closed.
  virtual const Error& untold_error() const = 0;

  virtual StorageFile& storage() = 0;
  virtual Exchange& exchange() = 0;
};

}  // namespace forebay
