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

#include "core/engine/cache/busy_time.hpp"
#include "core/engine/cache/cache_options.hpp"
#include "core/engine/cache/dirty_extents.hpp"
#include "core/engine/cache/flusher.hpp"
#include "core/engine/cache/kept_payload.hpp"
#include "core/engine/cache/log_probe.hpp"
#include "core/engine/cache/log_trial.hpp"
#include "core/engine/cache/log_writer.hpp"
#include "core/engine/cache/resource.hpp"
#include "core/engine/cache/sidecar.hpp"
#include "core/engine/cache/status_page.hpp"
#include "core/model/extent_set.hpp"
#include "core/plan/cache_pace.hpp"
#include "core/storage/file.hpp"

namespace forebay {

/// A file behind a write-behind cache on the node: writes go to a log and return, threads carry
/// them to the file; while a LogTrial goes on, some go to the file at once. This process reads what
/// it wrote, from the log or from the file; other processes see it in the file after drain(), and
/// find it there after a crash of the machine after sync(). Only this CachedFile may write the
/// bytes it holds dirty: whoever writes them elsewhere has it drain them first.
///
/// Nothing acknowledged is dropped. A write to the file that failed in the background surfaces at
/// the next write, sync or close, and the bytes stay in the log, where `forebay cache recover`
/// finds them. Where the log cannot take a write, the write goes to the file, after what the log
/// holds; state() tells, so that ranks can agree on what to do next.
///
/// No call and no thread of it calls MPI.
class CachedFile final : public StorageFile {
 public:
  /// `store` is empty, and becomes the log. `capacity` is what the log may take of the device,
  /// bytes, shared by all who were given it. Errors: those of the capacity and of the options.
  static Result<std::unique_ptr<CachedFile>> open(std::unique_ptr<StorageFile> file,
                                                  std::unique_ptr<LogStore> store,
                                                  const LogIdentity& identity,
                                                  const std::shared_ptr<Resource>& capacity,
                                                  const CacheOptions& options);
  /// Without close(), what is dirty stays in the log, and its notice says that it is left.
  ~CachedFile() override;
  CachedFile(const CachedFile&) = delete;
  CachedFile& operator=(const CachedFile&) = delete;

  // StorageFile, as if there were no cache.
  Status write_pieces(std::span<const iovec> pieces, Bytes offset) override;
  Result<Bytes> read_pieces(std::span<const iovec> pieces, Bytes offset) override;
  Result<Bytes> size() override;
  /// Commits, and brings all to the file first. Where several ranks have the file open, the others
  /// have nothing in their logs.
  Status resize(Bytes size) override;
  Status allocate(Bytes size) override;
  /// Commits, and what SyncScope says.
  Status sync() override;
  Status lock(Extent range, LockKind kind) override { return file_->lock(range, kind); }
  Status unlock(Extent range) override { return file_->unlock(range); }
  StripeLayout layout() const override { return file_->layout(); }
  const std::string& path() const override { return file_->path(); }

  /// What was written so far is whole: a recovery replays it. What is written from now on belongs
  /// to `next_epoch`, which is not below epoch(). Ranks that end a collective call together pass
  /// the same number; a rank that ends an access of its own passes epoch().
  Status commit(std::uint64_t next_epoch);
  std::uint64_t epoch() const { return epoch_; }
  /// While more accesses have begun than ended, a write is under way, which may have committed: no
  /// lull of CacheOptions ends meanwhile. At any time, also after close().
  void begin_access() { extents_.begin_access(); }
  void end_access() { extents_.end_access(); }

  /// What was written before is in the file when it returns, for all who read the file, though not
  /// necessarily after a crash of the machine. The second form: of the bytes in `extent`.
  Status drain();
  Status drain(Extent extent);
  /// Whether any byte in `extent` is only in the log.
  bool dirty(Extent extent) const { return extents_.any(extent); }
  /// Behind the last of them; 0: there is none.
  Bytes dirty_end() const { return extents_.end(); }

  /// Nothing more is written, and whatever else has the file open closes it. Nothing is flushed in
  /// the background meanwhile, until start_draining(): a close waits on many file systems for what
  /// is being written. As long as the file is compared with the log, a thread makes it durable
  /// beside that, to see how long it takes.
  void end_writing();
  /// Flushing begins now under any policy, and nobody waits for it.
  void start_draining();
  /// Commits, drains, makes durable, and removes the log and the sidecar. After an error the log is
  /// still there; it may be tried again. After a successful one no other call may follow but
  /// begin_access() and end_access().
  Status close();
  /// What is dirty is to be forgotten: the file is deleted. The log is removed; writes go through.
  Status discard();

  /// True: drains, and writes go to the file from now on. False: back to the log, if it works.
  Status set_write_through(bool write_through);
  bool writes_through() const { return write_through_; }

  /// For who protects it against the loss of the node.
  LogWriter& log() { return log_; }

  /// What there is to know about it.
  struct State {
    bool write_through = false;
    Error reason;  ///< Why, if it was not asked to: kind is none.
    Error left;    ///< Why the log is still there, though all it held is in the file.
    CacheProgress progress;
    Bytes log_bytes = 0;  ///< Written to the log, records and superblocks.
    /// For which writes waited until the log had room, or until it was given up and empty.
    std::int64_t crowded_ns = 0;
    std::string log_path;
  };
  State state() const;
  /// How fast log and file were.
  CachePace pace() const;

 private:
  static constexpr std::size_t most_given_apart = 4096;

  CachedFile(std::unique_ptr<StorageFile> file, std::unique_ptr<LogStore> store,
             const LogIdentity& identity, std::unique_ptr<ResourceHolder> capacity,
             const CacheOptions& options);

  Status write_through_locked(std::span<const iovec> pieces, Bytes offset);
  Status make_way();
  Status announce();
  DirtyNotice notice(bool is_left) const;
  void withdraw_notice();
  /// A sync is of the log alone.
  bool syncs_to_node() const {
    return options_.sync == SyncScope::node || options_.flush == CacheFlush::none;
  }
  /// What is in the log is relied upon after a crash of the node: its notice has to outlive that.
  bool relies_on_notice() const { return syncs_to_node() || options_.is_protected; }
  LogWriter::Outcome take_in(std::span<const iovec> pieces, Bytes offset);
  LogWriter::Outcome append(std::span<const iovec> pieces, Bytes offset);
  Status sync_file();
  Result<std::optional<Error>> make_room();
  Status degrade(const Error& reason);
  Status degrade_locked(const Error& reason);
  Status commit_locked(std::uint64_t next_epoch);
  Status sync_locked();
  Status settle();
  Status empty_log();
  Status remove_log();
  Status leave_log(const Error& reason);
  Status destroy_log();
  Status make_durable();
  Status make_durable_locked();  ///< With sync_mutex_ held.
  void make_durable_or_lose();
  bool was_given(Extent extent);
  Status take_lost();
  void give(Extent extent);
  bool log_empty() const { return !log_.oldest_segment_end(); }
  void update_background();
  void yield_capacity();
  CacheProgress progress() const;
  void publish(bool now) { status_.publish(progress(), now); }
  bool background_policy() const;
  Error kept_in_log(Error error) const;

  const CacheOptions options_;
  const std::unique_ptr<StorageFile> file_;
  const std::shared_ptr<LogTrial> trial_;  ///< Or null.
  LogStore& store_;                        ///< Of log_.
  std::mutex given_mutex_;
  /// What was given to the log while there was a trial; what does not fit in is all the rest.
  /// Guarded by given_mutex_.
  ExtentSet given_{most_given_apart};
  bool all_given_ = false;  ///< The same.
  Sidecar sidecar_;
  StatusPage status_;
  DirtyExtents extents_;
  LogWriter log_;
  KeptPayload kept_;  ///< For readers.
  std::mutex probe_mutex_;
  std::unique_ptr<LogProbe> probe_;  ///< Guarded by probe_mutex_.

  /// Shared by writers; exclusive for what must not meet half a write.
  std::shared_mutex calls_;
  std::mutex sync_mutex_;  ///< One makes the file durable at a time.
  std::mutex room_mutex_;  ///< One makes room at a time.
  std::mutex announce_mutex_;
  std::mutex background_mutex_;  ///< The last one to change what it depends on has the last word.
  std::atomic<std::uint64_t> epoch_{1};
  std::atomic<bool> uncommitted_{false};       ///< Something was appended since the last commit.
  std::atomic<bool> announced_{false};         ///< The notice is there.
  std::atomic<bool> written_directly_{false};  ///< Something in the file is not durable that the
                                               ///< log does not hold.
  std::atomic<bool> write_through_{false};     ///< Changes with calls_ held alone.
  std::atomic<bool> ended_writing_{false};     ///< end_writing() was called.
  std::atomic<bool> draining_{false};          ///< start_draining() was called.
  std::atomic<Bytes> logged_{0};
  BusyTime logging_;
  BusyTime crowded_;
  std::thread last_sync_;    ///< Of end_writing(). With calls_ held alone.
  bool replayable_ = false;  ///< A log that should be gone. With calls_ held alone.
  mutable std::mutex reason_mutex_;
  Error reason_;
  Error left_;  ///< Guarded by reason_mutex_, as is what follows.
  std::optional<Error> lost_;

  Flusher flusher_;  ///< Last: its threads end first.
};

}  // namespace forebay
