#pragma once

#include <cstdint>
#include <deque>
#include <unordered_map>
#include <vector>

#include "core/model/extent.hpp"
#include "testbed/server_queue.hpp"

namespace forebay::testbed {

using FileId = std::uint64_t;
using ClientId = std::int64_t;

struct ClusterParameters {
  int servers = 4;        ///< At least 1.
  Bytes stripe_size = 0;  ///< At least 1.
  ServerParameters server;
  Time lock_cost{};    ///< Time for which a conflict on a stripe keeps its server busy.
  Time object_cost{};  ///< Time for which each object of a file keeps the metadata server busy.
};

/// What one server did since the start. "Accepted" requests include those not answered yet.
struct ServerCounters {
  std::int64_t read_requests = 0;   ///< accepted
  std::int64_t write_requests = 0;  ///< accepted
  Bytes read_bytes = 0;
  Bytes write_bytes = 0;
  std::int64_t lock_conflicts = 0;
  Time busy{};                 ///< transfers and lock costs of the accepted requests
  std::int64_t queue = 0;      ///< accepted and not answered now
  std::int64_t queue_max = 0;  ///< the largest `queue` met by an arriving request, itself included
};

/// The servers, the locks and the clients' write-back windows of an emulated parallel file system.
/// It decides when each request is answered; it moves no bytes and knows no clock. Not thread-safe.
///
/// Striping: stripe s of every file is on server s % servers. A request is split into one part per
/// server it touches (its pieces on one server travel together); the parts proceed in parallel.
///
/// Locks: each stripe remembers its last writer. A part pays `lock_cost` for each stripe whose last
/// writer was another client. Reads neither pay nor take locks. Locks are kept while any client has
/// the file open.
///
/// Write-back: a client may have `slots` writes per server that are not answered. A write is
/// acknowledged at once where it finds fewer, else when the client's oldest ones are answered.
/// Waiting for durability is `settled`.
///
/// Names: one metadata server finds, makes or removes a file's objects, one on each server that the
/// file is spread over, one after the other. Without `object_cost` it is not waited for.
class Cluster {
 public:
  explicit Cluster(const ClusterParameters& parameters);

  /// When a read that arrives at `now` is answered: when its last part is, and not before the same
  /// client's writes to the file are. `extent` may be empty (end of file): one empty request to the
  /// server of its offset.
  Time read(Time now, FileId file, ClientId client, Extent extent);

  /// When a write that arrives at `now` is acknowledged to the client.
  Time write(Time now, FileId file, ClientId client, Extent extent);

  /// When all writes of `client` to `file` accepted so far are answered; `now` if they are.
  Time settled(Time now, FileId file, ClientId client) const;

  /// When the opening, making or removing of a file that arrives at `now` is answered.
  Time metadata(Time now);

  /// The file now ends at `size`: the locks of stripes that lie wholly beyond it are gone.
  void truncate(FileId file, Bytes size);

  /// Nobody has the file open any more: its locks are gone. Its deadlines stay with the servers.
  void forget(Time now, FileId file);

  const ClusterParameters& parameters() const { return parameters_; }
  std::vector<ServerCounters> counters(Time now) const;

 private:
  struct Part {
    Bytes bytes = 0;
    int lock_conflicts = 0;
    bool touched = false;
  };
  struct File {
    std::unordered_map<std::int64_t, ClientId> last_writer;  // by stripe
    std::unordered_map<ClientId, Time> settled;              // the client's last answer
  };

  int server_of(std::int64_t stripe) const {
    return static_cast<int>(stripe % parameters_.servers);
  }
  template <typename PerStripe>
  void split(Extent extent, PerStripe&& per_stripe);
  Time submit(Time now, int server, const Part& part);

  ClusterParameters parameters_;
  std::vector<ServerQueue> servers_;
  ServerQueue metadata_server_;
  std::vector<ServerCounters> counters_;  // without busy and queue, which the servers know
  std::vector<Part> parts_;               // of the request at hand, by server
  std::unordered_map<FileId, File> files_;
  // Answers of each client's writes, by server, increasing.
  std::unordered_map<ClientId, std::vector<std::deque<Time>>> windows_;
};

}  // namespace forebay::testbed
