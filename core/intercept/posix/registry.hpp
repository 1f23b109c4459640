#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "core/engine/prefetch/adviser.hpp"
#include "core/engine/prefetch/prefetcher.hpp"
#include "core/intercept/posix/cancellation.hpp"
#include "core/intercept/posix/counted_reads.hpp"
#include "core/intercept/posix/declared_reads.hpp"
#include "core/intercept/posix/earlier_reads.hpp"
#include "core/intercept/posix/followed.hpp"
#include "core/intercept/posix/left_alone.hpp"
#include "core/intercept/posix/managed_files.hpp"
#include "core/intercept/posix/parked_files.hpp"
#include "core/storage/file.hpp"
#include "core/storage/read_progress.hpp"
#include "core/storage/shown_memory.hpp"

namespace forebay::posix {

/// An open file description of the program that is read ahead, or whose reads are written down; all
/// duplicates of a descriptor share it. Used again for another file, but never freed: a thread that
/// found it in the table may still come when another has closed the descriptor.
class ManagedFile {
 public:
  std::mutex mutex;  ///< Held while the position is moved.
  /// Guarded by mutex. Empty in the pool.
  Followed followed;
  std::shared_ptr<EarlierReads> earlier;  ///< Guarded by mutex; null: what comes is not compared.
  CountedReads by_kernel;                 ///< What `followed` does not know of yet.
  /// What is read ahead is to be told how long the kernel's next read takes (took()): the
  /// waits_when_asked of the thread whose read that is, or null.
  std::atomic<const long*> asker{nullptr};
  FileId id;  ///< Guarded by the registry's mutex, as is what follows.
  int descriptors = 0;
  std::atomic<int> abandoned{0};  ///< Of them, those that are closed.
  /// Another process has the position too, since a fork: only the kernel can move it.
  std::atomic<bool> position_is_shared{false};
  /// Of stores, once they are written out, and reads may be served from our memory.
  std::atomic<bool> times_tell_late{false};
  std::atomic<bool> is_over{false};       ///< Nothing will be served any more.
  std::atomic<bool> is_undecided{false};  ///< It is yet to be decided what is fetched.
  bool times_are_told = false;            ///< They tell of changes: it was asked.
  int reads_undecided = 0;                ///< Of other places than those declared.
  int reads_inherited = 0;                ///< By offset, in a child, before it is decided.
  /// Recording, guarded by mutex: what a C stream reads by, or -1, and how far that is known.
  int stream = -1;
  off_t stream_read_to = 0;
};

/// True in a call of ours that calls the C library, and in a call from a signal handler that
/// interrupted one: then files are not managed.
extern constinit thread_local bool inside;

/// How often this thread had waited when one of its reads was asked for its time.
extern constinit thread_local long waits_when_asked;

class Inside {
 public:
  Inside() { inside = true; }
  ~Inside() { inside = false; }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;

 private:
  NotCancelled not_cancelled_;
};

/// A file that the program has mapped.
struct ShownFile {
  std::uintptr_t begin;
  std::uintptr_t end;
  std::shared_ptr<AdvisedFile> file;
  std::shared_ptr<ReadProgress> progress;
  std::int64_t openings;  ///< Of `file`: what Followed::openings was.
};

/// A file that other processes are told of.
struct AnnouncedFile {
  FileVersion version;
  std::weak_ptr<NodeReaders> presence;
};

/// All that is known of a process. A forked child begins with a new one and leaves its parent's
/// behind, whose locks may be held by threads that it does not have.
struct Registry {
  std::mutex mutex;  ///< By RegistryLock.
  /// A thread held the mutex for longer than others wait: nothing is read ahead any more.
  std::atomic<bool> is_stuck{false};
  pid_t process = ::getpid();
  std::unique_ptr<Prefetcher> prefetcher;  ///< Guarded by mutex, as is what follows.
  bool prefetcher_failed = false;
  /// Why there must be none of ours any more; null: there may.
  const char* no_more_threads = nullptr;
  bool uring_broke = false;
  std::vector<int> queue_descriptors;                 ///< Of the prefetcher.
  std::unique_ptr<Adviser> adviser;                   ///< Null before the first file for it.
  std::vector<std::unique_ptr<Adviser>> ended;        ///< Readers may still come to them.
  std::vector<std::unique_ptr<Prefetcher>> gave_way;  ///< Readers may still call wake() of them.
  std::vector<ManagedFile*> files;                    ///< All there ever were.
  std::vector<ManagedFile*> pool;                     ///< Of them, those without a file.
  std::atomic<bool> has_abandoned{false};
  bool has_ended = false;  ///< All have their records.
  /// No descriptor from here on was ever listed. Who closes many looks at it without the mutex.
  std::atomic<unsigned> listed_end{0};
  std::vector<ShownFile> mappings;
  ShownMemory shown_memory;  ///< Theirs; needs no mutex.
  std::vector<AnnouncedFile> announced;
  /// Files, their sizes and what is declared of them: of these it was told if that does not fit.
  /// The last ones, since some programs open millions.
  std::set<std::tuple<FileId, Bytes, DeclaredReads::Sections>> compared;
  std::set<std::uint64_t> late_devices;  ///< Whose files' times tell of stores once written out.
  FilesReadEarlier earlier;
  ParkedFiles parked;
  LeftAlone left_alone;
};

/// Holds the registry, unless another thread does not give it away: it waits for a file server that
/// does not answer, with which other files have nothing to do.
class [[nodiscard]] RegistryLock {
 public:
  explicit RegistryLock(Registry& state);
  explicit operator bool() const { return lock_.owns_lock(); }

  /// It stays locked beyond this.
  void keep() { lock_.release(); }

 private:
  std::unique_lock<std::mutex> lock_;
};

/// Never destroyed: programs read in their exit handlers too.
extern std::atomic<Registry*> registry;

/// A child that shares our memory (vfork), or was forked past us, must leave our state alone.
inline bool is_own_process(const Registry& state) { return ::getpid() == state.process; }

/// Nothing is fetched of the file that was opened as `path`, though it is declared, for the reason
/// `why`.
void leave_alone(const char* path, const char* why);

/// `descriptor` is closed by a call that can take no lock.
void abandon(Registry& state, int descriptor);

// With the registry locked:

/// Null: no thread is to be had.
Prefetcher* prefetcher_of(Registry& state);
/// What is read ahead ends, and begins anew with the next opening.
void retire_prefetcher(Registry& state, const char* why);
Adviser* adviser_of(Registry& state);

void list(Registry& state, int descriptor, ManagedFile* managed);
/// What a last descriptor was of is handed back, for its record.
Followed unlist(Registry& state, int descriptor);
/// The same of those of `managed` that were abandoned.
Followed unlist_abandoned(Registry& state, ManagedFile& managed);
/// `descriptor` is the first one of `followed`.
ManagedFile& follow(Registry& state, int descriptor, Followed followed);

}  // namespace forebay::posix
