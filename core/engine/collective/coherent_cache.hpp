#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "core/engine/cache/cached_file.hpp"
#include "core/engine/collective/cache_place.hpp"
#include "core/engine/collective/claims.hpp"
#include "core/engine/collective/exchange.hpp"
#include "core/engine/collective/file_handles.hpp"
#include "core/engine/collective/log_protection.hpp"
#include "core/engine/collective/opened_claims.hpp"
#include "core/model/counters.hpp"
#include "core/model/hints.hpp"
#include "core/storage/file.hpp"

namespace forebay {

/// One file that the ranks of an exchange write to logs of their own, and see as if they wrote to
/// the file: a CachedFile on each rank, made at its first write, and the Claims
/// that keep their logs apart. Whoever reads or writes what another rank's log holds has that rank
/// bring it to the file first, which a thread of that rank does.
///
/// Either all ranks write to logs or none does. Once ranks keep writing into each other's granules,
/// or a log fails, or turns out to be slower than the file (log_is_slower), or a process has
/// another handle of the file, all of them write to the file for the rest of the time, and notes()
/// says why.
///
/// Order after a crash: when bytes pass from one rank to another, the newer records are of a later
/// epoch.
class CoherentCache final : public StorageFile {
 public:
  /// Null where the hints ask for none, or where there can be none: then notes say why. The same on
  /// all ranks. `granule`: what ranks write whole, bytes. `file`, which is read and written by the
  /// logs' threads too, and `counters` outlive the cache. `handles`: of this process, or null.
  /// Collective.
  static std::unique_ptr<CoherentCache> open(Exchange& exchange, StorageFile& file,
                                             const Hints& hints, Bytes granule, Counters& counters,
                                             std::vector<std::string>& notes,
                                             std::shared_ptr<FileHandles> handles);
  /// The same, with logs at `place`, whatever the hints say of that.
  static std::unique_ptr<CoherentCache> open_at(Exchange& exchange, StorageFile& file,
                                                Result<CachePlace> place, const Hints& hints,
                                                Bytes granule, Counters& counters,
                                                std::vector<std::string>& notes,
                                                std::shared_ptr<FileHandles> handles);
  ~CoherentCache() override;
  CoherentCache(const CoherentCache&) = delete;
  CoherentCache& operator=(const CoherentCache&) = delete;

  // StorageFile. Independent; thread-safe.
  Status write_pieces(std::span<const iovec> pieces, Bytes offset) override;
  Result<Bytes> read_pieces(std::span<const iovec> pieces, Bytes offset) override;
  /// Also counts what other ranks' logs hold.
  Result<Bytes> size() override;
  Status resize(Bytes size) override;    ///< With nothing in any log: after settle() on all ranks.
  Status allocate(Bytes size) override;  ///< The same.
  /// Of this rank's part: commits, drains and makes durable, or as the hints say.
  Status sync() override;
  Status lock(Extent range, LockKind kind) override { return file_.lock(range, kind); }
  Status unlock(Extent range) override { return file_.unlock(range); }
  /// The file's; but ranks that write to logs do not wait for each other.
  StripeLayout layout() const override;
  const std::string& path() const override { return file_.path(); }

  /// The epoch that this rank is in. Ranks that end a collective write together agree on a number
  /// above those of all, and commit with it.
  std::uint64_t epoch() const { return epoch_; }
  /// What this rank wrote is whole; what it writes from now on is of `next_epoch`.
  Status commit(std::uint64_t next_epoch);
  Status commit() { return commit(epoch()); }
  /// As long as it lives, this rank writes, or waits for ranks that it writes together with:
  /// CachedFile::begin_access(). `cache` may be null.
  class OngoingWrite {
   public:
    explicit OngoingWrite(CoherentCache* cache);
    ~OngoingWrite();
    OngoingWrite(const OngoingWrite&) = delete;
    OngoingWrite& operator=(const OngoingWrite&) = delete;

   private:
    CoherentCache* const cache_;
  };

  /// When logs are protected against the loss of nodes, if the hints ask for it.
  enum class Moment {
    commit,   ///< Ranks agreed that what they wrote is whole.
    sync,     ///< The same, and it is durable.
    emptied,  ///< Nothing is in any log.
    end,      ///< A delay ends, or the file is closed.
  };
  /// What was written and committed before is protected, but for a delay. What cannot be is a note
  /// and no error: errors are those of the file. Collective.
  Status protect(Moment moment);
  /// From now on nothing is protected, or from now on everything is. Collective.
  Status set_delayed(bool delayed);
  /// Whether logs are protected, or will be; the same on all ranks.
  bool is_protected() const { return protection_ != nullptr; }

  /// All that this rank wrote is durable in the file, and its log is empty.
  Status settle();
  /// As long as `atomic`, all ranks write to the file. To be called by all; once the last one has
  /// returned, it holds.
  Status set_atomic(bool atomic);
  /// From now on all ranks write to the file. To be called by all of them, or by one.
  Status write_through(const std::string& reason);
  /// Whether that, or another reason for it, has come to this rank.
  bool given_up() const;

  /// This rank's log is empty and gone. Other ranks may still read and write, until they have heard
  /// of it too. With `discard`, what it holds is forgotten, once nobody reads any more: collective.
  Status close(bool discard);
  /// The same on all ranks, and no log goes before the logs that it protects; as long as the hints
  /// ask for it, what is in the log may go on to the file after it: until finish(). False: it is
  /// closed. Collective where logs are protected, or never flushed.
  Result<bool> close_early();
  /// The same, but nothing goes on after it, whatever the hints say: this rank's part is in the
  /// file, and so is what it still writes, from now on at once.
  Status close_together();
  /// After close_together() on all ranks, without an error on any: they need not be there for each
  /// other any more. What a rank still writes goes to the file.
  void part();
  /// After close_early(): a thread begins to do this rank's part of finish(). Once.
  void start_finishing();
  /// What any rank of them still has in its log is in the file, durably, and this one's is gone.
  Status finish();

  /// What a person should know of it.
  std::vector<std::string> notes() const;

 private:
  /// What came of trying to write: it is done, or another rank is to be asked first, or there is
  /// something that changed meanwhile. A log that fails or does not pay concerns all ranks.
  struct Attempt {
    bool done = false;
    Status written = {};
    std::optional<Claims::Foreign> foreign = {};
    Error failure = {};
  };

  CoherentCache(Exchange& exchange, StorageFile& file, OpenedClaims claims, CachePlace place,
                std::unique_ptr<LogProtection> protection, Counters& counters);

  Result<CachedFile*> opened();
  Status open_log();
  Status begin_answering();
  Status follow();
  CachedFile* in_use() const;
  Status change_length(Status (StorageFile::*change)(Bytes), Bytes size);
  Attempt try_write(std::span<const iovec> pieces, Bytes offset);
  Result<std::optional<Claims::Foreign>> foreign(Extent extent) const;
  bool through() const;
  Claims::Answer ask(int rank, const Claims::Question& question);
  Claims::Answer answer(const Claims::Question& question);
  Status sync_unlogged();
  Status ask_all_to_empty();
  Status empty_log();
  Status settle_log();
  void back_to_log();
  Status close_log(bool discard);
  void end_protection();
  LogWriter* log() const;
  void add_note(std::string note);
  void count_progress();

  Exchange& exchange_;  ///< Of calls that are collective.
  StorageFile& file_;
  const std::shared_ptr<SharedMemory> memory_;  ///< Of the claims.
  const CachePlace place_;
  Counters& counters_;
  const std::unique_ptr<Claims> claims_;
  std::unique_ptr<ClaimsServer> server_;       ///< For ranks of other hosts; on rank 0.
  std::unique_ptr<LogProtection> protection_;  ///< Used by the rank's own thread alone.

  /// Shared by a write and its claim; exclusive for who takes claims away.
  std::shared_mutex turn_;
  std::mutex opening_;
  std::mutex asking_;
  int ongoing_ = 0;  ///< OngoingWrites, all of which the log knows of. Guarded by opening_.
  std::unique_ptr<CachedFile> log_;         ///< Made with opening_ held.
  std::atomic<CachedFile*> made_{nullptr};  ///< The same, for who looks whether it is there.
  std::atomic<std::uint64_t> epoch_{1};
  mutable std::mutex notes_mutex_;
  std::vector<std::string> notes_;
  bool closed_ = false;  ///< Guarded by turn_.
  /// Of log_, as far as it is in the counters. Guarded by turn_.
  std::int64_t crowded_ns_ = 0;
  /// The log holds records that a recovery would replay.
  std::atomic<bool> unsettled_{false};
  /// This rank changed the file while it had no log, and that is not durable.
  std::atomic<bool> unlogged_{false};
  std::atomic<bool> answers_{false};  ///< Others know that this rank answers.
  std::thread answering_;
  std::thread finishing_;
  Status finished_;  ///< What came of it.
  std::optional<FileHandles::Cache> listed_;
};

}  // namespace forebay
