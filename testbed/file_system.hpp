#pragma once

// A parallel file system emulated on one machine, as a FUSE pass-through over a backing directory.
//
// What it models
//
// Servers. The bytes of every file are striped over `servers` servers, stripe s on server
// s % servers. Each server transfers `bandwidth`, one request after the other; an answer follows
// its transfer by `latency`, and at most `slots` requests of a server are between start and answer.
// A request of the kernel (at most 1 MiB) that touches several stripes becomes one request per
// server, side by side, and is answered with the last of them (server_queue.hpp, cluster.hpp).
//
// Locks. A write to a stripe whose last writer was another client keeps the stripe's server busy
// for `lock_cost` before the transfer, as when Lustre moves an extent lock from one client to
// another. A client is a process. Locks last while anybody has the file open.
//
// Write-back. A client may have `slots` unanswered writes on each server. A write is acknowledged
// as soon as the client has fewer than that on every server it touches; so a steady writer runs at
// the servers' speed, and a burst is absorbed. close(2), fsync(2) and reads of the file wait until
// all of the client's writes to that file are answered.
//
// Time. The answer of a request is known when it arrives: it is computed on virtual clocks, the
// bytes are moved to or from the backing file at once, and one timer thread sends the reply when it
// is due. No thread sleeps for a request, so thousands can be outstanding. What the machine adds
// (copying, waking up) delays the next request of a client, not the servers' clocks.
//
// Names, where they cost something: one metadata server takes `object_cost` for each server of a
// file that is opened, made or removed, and answers `latency` after that.
//
// Coherence. There is no cache: every open file does direct I/O, attributes and names are looked up
// each time. Processes on "different nodes" see each other's bytes as soon as a write is accepted.
//
// Page cache, where it is asked for. All processes are then clients of one node: what is read stays
// in the kernel's page cache, the kernel reads ahead into it, and servers meet only what it has
// not. Writes go to the page cache and to the servers at once. The page cache is never doubted, as
// by a client that holds a lock on the whole file: the kernel sees every change that goes through
// the mount, and no other is allowed.
//
// Faults, where they are asked for. Reads of some bytes of every file fail (EIO); reads are
// answered short of what they ask for.
//
// What it does not model
//
// - Metadata servers, beside what `object_cost` says: look-ups, truncations and attribute calls are
//   answered at once.
// - The client's page cache, unless it is asked for: nothing is read ahead, and a plain read(2)
//   larger than 1 MiB is sent 1 MiB at a time, as the kernel does. Small writes of a client are
//   never merged into larger ones.
// - Dirty data: bytes are in the backing file when a write is accepted, so no crash loses them and
//   no other client's read waits for them longer than its server's queue makes it wait.
// - Read locks, lock requests larger than a stripe, and lock time-outs.
// - Networks: clients and servers are linked by `latency` alone; a client has no bandwidth limit.
// - Durability: fsync(2) waits for the servers, and does not flush the backing file system.
//
// The kernel's part
//
// By default FUSE lets one direct write per file proceed at a time, which no parallel file system
// does. FOPEN_PARALLEL_DIRECT_WRITES lifts that; libfuse 3.14 cannot set it, so the replies to OPEN
// and CREATE are composed here, as <linux/fuse.h> defines them. The kernel still serialises writes
// that extend a file (or that append): such a writer holds the file's lock until its write is
// acknowledged, which write-back keeps short.
//
// With the page cache the kernel lets one writer of a file in at a time, wherever it writes, and
// fetches at most 1 MiB by one request.
//
// fcntl(2) and flock(2) locks are the kernel's own. Shared writable mmap(2) of direct-I/O files is
// refused by the kernel (ENODEV); private mappings work. With the page cache all mappings work.

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "core/model/error.hpp"
#include "core/model/extent.hpp"
#include "testbed/cluster.hpp"
#include "testbed/fuse_api.hpp"
#include "testbed/node_table.hpp"
#include "testbed/read_ahead.hpp"
#include "testbed/reply_timer.hpp"
#include "testbed/state.hpp"
#include "testbed/thread_groups.hpp"

namespace forebay::testbed {

struct FileSystemParameters {
  std::string backing;  ///< Absolute path of an existing directory.
  std::string mount;    ///< Absolute path; told, not used.
  ClusterParameters cluster;
  bool page_cache = false;            ///< The kernel's, for what is read; else it has none.
  std::optional<Bytes> read_ahead;    ///< The kernel's, a multiple of 1 KiB; none: as it is.
  std::vector<Extent> unreadable;     ///< Of every file.
  std::optional<Bytes> longest_read;  ///< Of what answers a request; none: what it asks for.
};

/// The operations of the emulated file system, called by libfuse's threads. Each operation replies
/// to its request exactly once, perhaps later and on the timer's thread.
class FileSystem {
 public:
  /// Opens the backing directory.
  static Result<std::unique_ptr<FileSystem>> open(const FileSystemParameters& parameters);

  /// The table for fuse_session_new; its user data is the FileSystem.
  static const fuse_lowlevel_ops& operations();

  State state(bool running);

  /// To be called once it is mounted and before it is served: where the state finds the kernel's
  /// read-ahead.
  void mounted(ReadAhead read_ahead) { read_ahead_ = std::move(read_ahead); }

  /// Sends the replies that are not due yet, and takes no more. To be called when the session's
  /// threads have ended and before the session is destroyed.
  void finish();

 private:
  FileSystem(const FileSystemParameters& parameters, FileDescriptor root);

  void init(fuse_conn_info* connection) const;

  // Names and attributes: file_system_names.cpp.
  void lookup(fuse_req_t req, fuse_ino_t parent, const char* name);
  void forget(fuse_req_t req, fuse_ino_t ino, uint64_t lookups);
  void forget_multi(fuse_req_t req, size_t count, fuse_forget_data* forgets);
  void getattr(fuse_req_t req, fuse_ino_t ino, fuse_file_info* info);
  void setattr(fuse_req_t req, fuse_ino_t ino, struct stat* attributes, int which,
               fuse_file_info* info);
  void readlink(fuse_req_t req, fuse_ino_t ino);
  void mknod(fuse_req_t req, fuse_ino_t parent, const char* name, mode_t mode, dev_t device);
  void mkdir(fuse_req_t req, fuse_ino_t parent, const char* name, mode_t mode);
  void unlink(fuse_req_t req, fuse_ino_t parent, const char* name);
  void rmdir(fuse_req_t req, fuse_ino_t parent, const char* name);
  void symlink(fuse_req_t req, const char* target, fuse_ino_t parent, const char* name);
  void rename(fuse_req_t req, fuse_ino_t parent, const char* name, fuse_ino_t new_parent,
              const char* new_name, unsigned int flags);
  void link(fuse_req_t req, fuse_ino_t ino, fuse_ino_t new_parent, const char* new_name);
  void opendir(fuse_req_t req, fuse_ino_t ino, fuse_file_info* info);
  void readdir(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset, fuse_file_info* info);
  void releasedir(fuse_req_t req, fuse_ino_t ino, fuse_file_info* info);
  void statfs(fuse_req_t req, fuse_ino_t ino);
  void setxattr(fuse_req_t req, fuse_ino_t ino, const char* name, const char* value, size_t size,
                int flags);
  void getxattr(fuse_req_t req, fuse_ino_t ino, const char* name, size_t size);
  void listxattr(fuse_req_t req, fuse_ino_t ino, size_t size);
  void removexattr(fuse_req_t req, fuse_ino_t ino, const char* name);

  // Open files and their bytes: file_system_data.cpp.
  void create(fuse_req_t req, fuse_ino_t parent, const char* name, mode_t mode,
              fuse_file_info* info);
  void open(fuse_req_t req, fuse_ino_t ino, fuse_file_info* info);
  void read(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset, fuse_file_info* info);
  void write(fuse_req_t req, fuse_ino_t ino, const char* data, size_t size, off_t offset,
             fuse_file_info* info);
  void flush(fuse_req_t req, fuse_ino_t ino, fuse_file_info* info);
  void release(fuse_req_t req, fuse_ino_t ino, fuse_file_info* info);
  void fsync(fuse_req_t req, fuse_ino_t ino, int data_only, fuse_file_info* info);
  void fallocate(fuse_req_t req, fuse_ino_t ino, int mode, off_t offset, off_t length,
                 fuse_file_info* info);
  void lseek(fuse_req_t req, fuse_ino_t ino, off_t offset, int whence, fuse_file_info* info);

  template <auto method, typename... Args>
  static void call(fuse_req_t req, Args... args) {
    (static_cast<FileSystem*>(fuse_req_userdata(req))->*method)(req, args...);
  }

  /// `name` in `parent`, counted as a look-up; or an errno.
  int enter(const Node& parent, const char* name, fuse_entry_param& entry);
  void reply_with_entry(fuse_req_t req, const Node& parent, const char* name);
  /// Gives a file just made to who asked for it, where this process is root and may.
  void give_to_requester(fuse_req_t req, int directory_fd, const char* name) const;
  int status_of(fuse_ino_t ino, struct stat& status) const;
  void present(struct stat& status) const;

  ClientId client_of(fuse_req_t req);
  std::uint32_t open_flags(fuse_ino_t ino) const;
  /// How much of a read is answered, from its beginning; none: it fails.
  std::optional<Bytes> answered(Extent read) const;
  void count_open(NodeId id);
  void closed(fuse_ino_t ino, fuse_file_info* info);
  void truncated(NodeId id, Bytes size);
  void reply_when_settled(fuse_req_t req, fuse_ino_t ino);

  /// To the opening, making or removing of a file.
  void reply_after_metadata(std::function<void()> reply);

  /// Decides with the cluster, at the time of the decision, when `reply` is due; sends it then.
  template <typename Decide, typename Reply>
  void reply_when_due(Decide&& decide, Reply&& reply);

  const FileSystemParameters parameters_;
  const Time started_;
  std::optional<ReadAhead> read_ahead_;
  NodeTable nodes_;
  ThreadGroups thread_groups_;
  std::mutex cluster_mutex_;  // also for open_counts_
  Cluster cluster_;
  std::unordered_map<NodeId, int> open_counts_;
  std::unique_ptr<ReplyTimer> timer_;
};

/// Node ids with a meaning of their own. MOUNT/.forebay-testbed/counters.json is not in the backing
/// directory and not in listings.
constexpr NodeId root_node = FUSE_ROOT_ID;
constexpr NodeId control_directory_node = 2;
constexpr NodeId counters_node = 3;
constexpr NodeId first_backing_node = 16;
constexpr const char* control_directory_name = ".forebay-testbed";
constexpr const char* counters_name = "counters.json";

/// The extended attribute of every file and directory that tells the layout.
constexpr const char* stripe_attribute_name = "user.forebay.stripe";

}  // namespace forebay::testbed
