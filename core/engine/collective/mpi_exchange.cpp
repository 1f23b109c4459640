#include "core/engine/collective/mpi_exchange.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <chrono>
#include <climits>
#include <functional>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <thread>

#include "core/engine/collective/hardware.hpp"
#include "core/engine/collective/meeting_point.hpp"
#include "core/engine/collective/shared_memory.hpp"

namespace forebay {
namespace {

MPI_Op mpi_op(Reduce op) {
  switch (op) {
    case Reduce::min:
      return MPI_MIN;
    case Reduce::max:
      return MPI_MAX;
    case Reduce::sum:
      break;
  }
  return MPI_SUM;
}

int checked_count(std::size_t bytes) {
  assert(bytes <= static_cast<std::size_t>(INT_MAX) && "a message is at most one window");
  return static_cast<int>(bytes);
}

/// What the ranks that can share memory with each other have in common and no others do: the
/// running kernel and the /dev/shm they see (containers of one host may each have their own).
std::int64_t host_id() {
  std::string description = running_kernel();
  struct stat shared = {};
  if (::stat("/dev/shm", &shared) == 0) description += ' ' + std::to_string(shared.st_dev);
  return static_cast<std::int64_t>(std::hash<std::string>{}(description));
}

NodeMap make_node_map(const std::vector<std::int64_t>& node_ids) {
  NodeMap map;
  std::map<std::int64_t, int> nodes;
  for (std::size_t r = 0; r < node_ids.size(); ++r) {
    const auto [found, is_new] = nodes.try_emplace(node_ids[r], map.nodes());
    if (is_new) map.ranks_of_node.emplace_back();
    map.node_of_rank.push_back(found->second);
    map.ranks_of_node[static_cast<std::size_t>(found->second)].push_back(static_cast<int>(r));
  }
  return map;
}

/// What ranks tell each other when they meet.
struct Meeting {
  Place place;
  std::int64_t rider;
};

class MpiExchange final : public Exchange {
 public:
  MpiExchange(MPI_Comm communicator, int ranks_per_node, Bytes most_gathered, std::int64_t* rider)
      : communicator_(communicator), most_gathered_(most_gathered) {
    // The program's error handler must not see Forebay's own calls.
    PMPI_Comm_set_errhandler(communicator_, MPI_ERRORS_ARE_FATAL);
    PMPI_Comm_rank(communicator_, &rank_);
    PMPI_Comm_size(communicator_, &size_);
    // One gather tells every rank everything: opening a file must not cost more than it has to.
    const Meeting mine{{host_id(), usable_cores()}, rider != nullptr ? *rider : 0};
    std::vector<Meeting> met(static_cast<std::size_t>(size_));
    PMPI_Allgather(&mine, sizeof mine, MPI_BYTE, met.data(), sizeof mine, MPI_BYTE, communicator_);
    std::vector<std::int64_t> ids;
    std::vector<Place> places;
    for (const Meeting& one : met) {
      ids.push_back(one.place.host);
      places.push_back(one.place);
      if (rider != nullptr) *rider = std::max(*rider, one.rider);
    }
    patient_ = forebay::cores_are_shared(places);
    nodes_ = make_node_map(ids);
    hosts_ = nodes_.node_of_rank;
    if (ranks_per_node > 0) {
      for (int r = 0; r < size_; ++r) ids[static_cast<std::size_t>(r)] = r / ranks_per_node;
      nodes_ = make_node_map(ids);
    }
    if (patient_ && on_one_host() && size_ > 1) make_meeting_point();
  }

  ~MpiExchange() override { PMPI_Comm_free(&communicator_); }

  MpiExchange(const MpiExchange&) = delete;
  MpiExchange& operator=(const MpiExchange&) = delete;

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  const NodeMap& nodes() const override { return nodes_; }
  const std::vector<int>& host_of_rank() const override { return hosts_; }
  bool cores_are_shared() const override { return patient_; }

  void barrier() override {
    if (meeting_ != nullptr) {
      meeting_->gather({}, {});
      return;
    }
    together([&] { PMPI_Barrier(communicator_); },
             [&](MPI_Request* request) { PMPI_Ibarrier(communicator_, request); });
  }

  void all_reduce(std::span<std::int64_t> values, Reduce op) override {
    if (meets(values.size_bytes())) {
      const std::vector<std::int64_t> all = gathered(values);
      for (std::size_t i = 0; i < values.size(); ++i) {
        values[i] = all[i];
        for (std::size_t at = i + values.size(); at < all.size(); at += values.size()) {
          values[i] = reduced(values[i], all[at], op);
        }
      }
      return;
    }
    const int count = checked_count(values.size());
    together(
        [&] {
          PMPI_Allreduce(MPI_IN_PLACE, values.data(), count, MPI_INT64_T, mpi_op(op),
                         communicator_);
        },
        [&](MPI_Request* request) {
          PMPI_Iallreduce(MPI_IN_PLACE, values.data(), count, MPI_INT64_T, mpi_op(op),
                          communicator_, request);
        });
  }

  void all_gather(std::span<const std::byte> mine, std::span<std::byte> all) override {
    if (meets(mine.size())) {
      meeting_->gather(mine, all);
      return;
    }
    const int count = checked_count(mine.size());
    together(
        [&] {
          PMPI_Allgather(mine.data(), count, MPI_BYTE, all.data(), count, MPI_BYTE, communicator_);
        },
        [&](MPI_Request* request) {
          PMPI_Iallgather(mine.data(), count, MPI_BYTE, all.data(), count, MPI_BYTE, communicator_,
                          request);
        });
  }

  std::vector<std::vector<std::byte>> all_gather_varying(std::span<const std::byte> mine) override {
    const auto ranks = static_cast<std::size_t>(size_);
    const auto size = static_cast<Bytes>(mine.size());
    std::vector<Bytes> sizes(ranks);
    all_gather(std::as_bytes(std::span(&size, 1)), std::as_writable_bytes(std::span(sizes)));
    std::vector<std::vector<std::byte>> by_rank(ranks);
    if (std::accumulate(sizes.begin(), sizes.end(), Bytes{0}) > most_gathered_) {
      for (std::size_t r = 0; r < ranks; ++r) by_rank[r].resize(static_cast<std::size_t>(sizes[r]));
      std::ranges::copy(mine, by_rank[static_cast<std::size_t>(rank_)].begin());
      broadcast_each(by_rank);
      return by_rank;
    }
    const std::vector<int> counts(sizes.begin(), sizes.end());
    std::vector<int> starts(ranks);
    std::exclusive_scan(counts.begin(), counts.end(), starts.begin(), 0);
    std::vector<std::byte> all(static_cast<std::size_t>(starts.back() + counts.back()));
    const int count = counts[static_cast<std::size_t>(rank_)];
    together(
        [&] {
          PMPI_Allgatherv(mine.data(), count, MPI_BYTE, all.data(), counts.data(), starts.data(),
                          MPI_BYTE, communicator_);
        },
        [&](MPI_Request* request) {
          PMPI_Iallgatherv(mine.data(), count, MPI_BYTE, all.data(), counts.data(), starts.data(),
                           MPI_BYTE, communicator_, request);
        });
    for (std::size_t r = 0; r < ranks; ++r) {
      by_rank[r].assign(all.begin() + starts[r], all.begin() + starts[r] + counts[r]);
    }
    return by_rank;
  }

  std::int64_t exclusive_sum(std::int64_t value) override {
    std::int64_t sum = 0;
    if (meeting_ != nullptr) {
      const std::vector<std::int64_t> all = gathered({&value, 1});
      return std::accumulate(all.begin(), all.begin() + rank_, sum);
    }
    together([&] { PMPI_Exscan(&value, &sum, 1, MPI_INT64_T, MPI_SUM, communicator_); },
             [&](MPI_Request* request) {
               PMPI_Iexscan(&value, &sum, 1, MPI_INT64_T, MPI_SUM, communicator_, request);
             });
    return rank_ == 0 ? 0 : sum;  // MPI leaves rank 0's result undefined.
  }

  Result<std::unique_ptr<SharedRegion>> share(Bytes size) override {
    const auto my_node =
        static_cast<std::size_t>(nodes_.node_of_rank[static_cast<std::size_t>(rank_)]);
    return share_from(nodes_.ranks_of_node[my_node].front(), size);
  }

  Ticket send(int to, int tag, std::span<const std::byte> data) override {
    MPI_Request request = MPI_REQUEST_NULL;
    PMPI_Issend(data.data(), checked_count(data.size()), MPI_BYTE, to, tag, communicator_,
                &request);
    ring(to);
    return keep({request, std::nullopt});
  }

  Ticket receive(int from, int tag, std::span<std::byte> data) override {
    MPI_Request request = MPI_REQUEST_NULL;
    PMPI_Irecv(data.data(), checked_count(data.size()), MPI_BYTE, from, tag, communicator_,
               &request);
    return keep({request, from});
  }

  Bell* bell(int of_rank) override {
    return meeting_ != nullptr ? &meeting_->bell(of_rank) : nullptr;
  }

  bool done(Ticket ticket, Bytes* received) override {
    const auto found = requests_.find(ticket);
    assert(found != requests_.end());
    int complete = 0;
    MPI_Status status;
    PMPI_Test(&found->second.request, &complete, &status);
    if (complete == 0) return false;
    if (received != nullptr) {
      int count = 0;
      PMPI_Get_count(&status, MPI_BYTE, &count);
      *received = count;
    }
    if (found->second.sender) ring(*found->second.sender);
    requests_.erase(found);
    return true;
  }

 private:
  struct Pending {
    MPI_Request request;
    std::optional<int> sender;  ///< Who waits for it to be received.
  };

  /// A collective, as `blocking` or `started`. MPIs wait by polling: where ranks share cores, one
  /// that polls keeps the core from the one it waits for, for a time slice at each step of the
  /// collective. There, who waits sleeps between looks.
  void together(const auto& blocking, const auto& started) {
    if (!patient_) {
      blocking();
      return;
    }
    MPI_Request request = MPI_REQUEST_NULL;
    started(&request);
    int complete = 0;
    while (PMPI_Test(&request, &complete, MPI_STATUS_IGNORE), complete == 0) {
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
  }

  /// Memory that `leader` makes and those who name the same one see; collective over all ranks, an
  /// error on all of them if it is one on any.
  Result<std::unique_ptr<SharedRegion>> share_from(int leader, Bytes size) {
    Error failure;
    std::unique_ptr<SharedMemory> region;
    std::array<char, 64> name{};
    if (rank_ == leader) {
      if (auto made = SharedMemory::create(size)) {
        region = std::move(*made);
        assert(region->name().size() < name.size());
        region->name().copy(name.data(), name.size() - 1);
      } else {
        failure = made.error();
      }
    }
    std::vector<std::array<char, 64>> names(static_cast<std::size_t>(size_));
    all_gather(std::as_bytes(std::span(name)), std::as_writable_bytes(std::span(names)));
    const char* of_leader = names[static_cast<std::size_t>(leader)].data();
    if (rank_ != leader && of_leader[0] != '\0') {
      if (auto attached = SharedMemory::attach(of_leader, size)) {
        region = std::move(*attached);
      } else {
        failure = attached.error();
      }
    }
    std::int64_t worst = static_cast<std::int64_t>(failure.kind);
    all_reduce({&worst, 1}, Reduce::max);
    if (rank_ == leader && region) region->unlink();
    if (worst == 0) return std::unique_ptr<SharedRegion>(std::move(region));
    if (failure.what.empty()) failure.what = "another rank could not make its shared memory";
    failure.kind = static_cast<ErrorKind>(worst);
    return tl::unexpected(failure);
  }

  /// From here on small collectives need no messages, and a message tells that it moved: if there
  /// is memory.
  void make_meeting_point() {
    auto region = share_from(0, MeetingPoint::region_bytes(size_));
    if (!region) return;
    meeting_ = std::make_unique<MeetingPoint>(std::move(*region), rank_, size_, [this] {
      int flag = 0;  // Makes MPI go on with whatever it has under way.
      PMPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, communicator_, &flag, MPI_STATUS_IGNORE);
    });
  }

  bool meets(std::size_t bytes) const {
    return meeting_ != nullptr && bytes <= MeetingPoint::most_bytes;
  }

  std::vector<std::int64_t> gathered(std::span<const std::int64_t> mine) {
    std::vector<std::int64_t> all(static_cast<std::size_t>(size_) * mine.size());
    meeting_->gather(std::as_bytes(mine), std::as_writable_bytes(std::span(all)));
    return all;
  }

  void ring(int other) {
    if (meeting_ != nullptr) meeting_->bell(other).ring();
  }

  Ticket keep(const Pending& pending) {
    requests_.emplace(++last_ticket_, pending);
    return last_ticket_;
  }

  /// Each rank's bytes to all others, in parts that an int can count.
  void broadcast_each(std::vector<std::vector<std::byte>>& by_rank) {
    for (std::size_t r = 0; r < by_rank.size(); ++r) {
      std::span<std::byte> rest(by_rank[r]);
      while (!rest.empty()) {
        const std::size_t part = std::min(rest.size(), static_cast<std::size_t>(most_gathered_));
        PMPI_Bcast(rest.data(), checked_count(part), MPI_BYTE, static_cast<int>(r), communicator_);
        rest = rest.subspan(part);
      }
    }
  }

  MPI_Comm communicator_;
  const Bytes most_gathered_;
  int rank_ = 0;
  int size_ = 1;
  bool patient_ = false;  ///< Sleep between looks; the same on all ranks.
  NodeMap nodes_;
  std::vector<int> hosts_;
  std::unique_ptr<MeetingPoint> meeting_;  ///< Null: waiting is left to MPI.
  std::map<Ticket, Pending> requests_;
  Ticket last_ticket_ = 0;
};

}  // namespace

std::shared_ptr<Exchange> make_mpi_exchange(MPI_Comm communicator, int ranks_per_node,
                                            Bytes most_gathered, std::int64_t* rider) {
  return std::make_shared<MpiExchange>(communicator, ranks_per_node, most_gathered, rider);
}

}  // namespace forebay
