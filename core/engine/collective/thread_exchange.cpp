#include "core/engine/collective/thread_exchange.hpp"

#include <algorithm>
#include <cassert>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <thread>
#include <tuple>

#include "core/engine/collective/hardware.hpp"

namespace forebay {
namespace {

/// Heap memory that the threads of one emulated node share.
class HeapRegion final : public SharedRegion {
 public:
  explicit HeapRegion(Bytes size)
      : words_(std::make_shared<std::vector<Line>>(static_cast<std::size_t>(size + 63) / 64)),
        size_(size) {}
  std::span<std::byte> bytes() const override {
    return {reinterpret_cast<std::byte*>(words_->data()), static_cast<std::size_t>(size_)};
  }

 private:
  struct alignas(64) Line {  // cache-line alignment, as mmap gives
    std::byte bytes[64] = {};
  };
  std::shared_ptr<std::vector<Line>> words_;
  Bytes size_;
};

struct Send {
  std::span<const std::byte> data;
  bool matched = false;
};

struct Receive {
  std::span<std::byte> data;
  bool matched = false;
  Bytes received = 0;
};

/// What the threads of one run share.
struct Hub {
  Hub(int ranks, int ranks_per_node, int ranks_per_host)
      : contributions(static_cast<std::size_t>(ranks)) {
    for (int r = 0; r < ranks; ++r) {
      hosts.push_back(r / ranks_per_host);
      const int node = r / ranks_per_node;
      if (node == nodes.nodes()) nodes.ranks_of_node.emplace_back();
      nodes.node_of_rank.push_back(node);
      nodes.ranks_of_node.back().push_back(r);
    }
    regions.resize(static_cast<std::size_t>(nodes.nodes()));
  }

  NodeMap nodes;
  std::vector<int> hosts;
  std::mutex mutex;
  std::condition_variable changed;

  // One collective step: everybody contributes, the last one opens the gate.
  std::vector<std::vector<std::byte>> contributions;
  std::vector<std::vector<std::byte>> gathered;
  int arrived = 0;
  std::uint64_t generation = 0;
  std::vector<std::shared_ptr<HeapRegion>> regions;

  using Channel = std::tuple<int, int, int>;  // from, to, tag
  std::map<Channel, std::deque<std::shared_ptr<Send>>> sends;
  std::map<Channel, std::deque<std::shared_ptr<Receive>>> receives;

  void match(const Channel& channel) {
    auto& waiting_sends = sends[channel];
    auto& waiting_receives = receives[channel];
    while (!waiting_sends.empty() && !waiting_receives.empty()) {
      Send& send = *waiting_sends.front();
      Receive& receive = *waiting_receives.front();
      assert(send.data.size() <= receive.data.size() && "message truncated");
      std::copy(send.data.begin(), send.data.end(), receive.data.begin());
      receive.received = static_cast<Bytes>(send.data.size());
      send.matched = receive.matched = true;
      waiting_sends.pop_front();
      waiting_receives.pop_front();
    }
  }
};

class ThreadExchange final : public Exchange {
 public:
  ThreadExchange(std::shared_ptr<Hub> hub, int rank) : hub_(std::move(hub)), rank_(rank) {}

  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(hub_->contributions.size()); }
  const NodeMap& nodes() const override { return hub_->nodes; }
  const std::vector<int>& host_of_rank() const override { return hub_->hosts; }
  bool cores_are_shared() const override { return size() > usable_cores().count(); }

  void barrier() override { all_gather_varying({}); }

  void all_reduce(std::span<std::int64_t> values, Reduce op) override {
    const auto all = all_gather_varying(std::as_bytes(values));
    for (std::size_t r = 0; r < all.size(); ++r) {
      for (std::size_t i = 0; i < values.size(); ++i) {
        std::int64_t theirs = 0;
        std::memcpy(&theirs, all[r].data() + i * sizeof theirs, sizeof theirs);
        values[i] = r == 0 ? theirs : reduced(values[i], theirs, op);
      }
    }
  }

  void all_gather(std::span<const std::byte> mine, std::span<std::byte> all) override {
    auto out = all.begin();
    for (const auto& part : all_gather_varying(mine)) {
      out = std::copy(part.begin(), part.end(), out);
    }
  }

  std::vector<std::vector<std::byte>> all_gather_varying(std::span<const std::byte> mine) override {
    std::unique_lock lock(hub_->mutex);
    hub_->contributions[static_cast<std::size_t>(rank_)].assign(mine.begin(), mine.end());
    const std::uint64_t generation = hub_->generation;
    if (++hub_->arrived == size()) {
      hub_->gathered = hub_->contributions;
      hub_->arrived = 0;
      ++hub_->generation;
      hub_->changed.notify_all();
    } else {
      hub_->changed.wait(lock, [&] { return hub_->generation != generation; });
    }
    return hub_->gathered;
  }

  std::int64_t exclusive_sum(std::int64_t value) override {
    const auto all = all_gather_varying(std::as_bytes(std::span(&value, 1)));
    std::int64_t sum = 0;
    for (int r = 0; r < rank_; ++r) {
      std::int64_t theirs = 0;
      std::memcpy(&theirs, all[static_cast<std::size_t>(r)].data(), sizeof theirs);
      sum += theirs;
    }
    return sum;
  }

  Result<std::unique_ptr<SharedRegion>> share(Bytes size) override {
    const auto node =
        static_cast<std::size_t>(hub_->nodes.node_of_rank[static_cast<std::size_t>(rank_)]);
    if (hub_->nodes.ranks_of_node[node].front() == rank_) {
      const std::scoped_lock lock(hub_->mutex);
      hub_->regions[node] = std::make_shared<HeapRegion>(size);
    }
    barrier();
    std::unique_ptr<SharedRegion> region;
    {
      const std::scoped_lock lock(hub_->mutex);
      region = std::make_unique<HeapRegion>(*hub_->regions[node]);
    }
    barrier();  // Nobody makes the next region before all have this one.
    return region;
  }

  Ticket send(int to, int tag, std::span<const std::byte> data) override {
    const std::scoped_lock lock(hub_->mutex);
    const Hub::Channel channel{rank_, to, tag};
    auto send = std::make_shared<Send>(Send{data});
    hub_->sends[channel].push_back(send);
    hub_->match(channel);
    sends_.emplace(++last_ticket_, std::move(send));
    return last_ticket_;
  }

  Ticket receive(int from, int tag, std::span<std::byte> data) override {
    const std::scoped_lock lock(hub_->mutex);
    const Hub::Channel channel{from, rank_, tag};
    auto receive = std::make_shared<Receive>(Receive{data});
    hub_->receives[channel].push_back(receive);
    hub_->match(channel);
    receives_.emplace(++last_ticket_, std::move(receive));
    return last_ticket_;
  }

  bool done(Ticket ticket, Bytes* received) override {
    const std::scoped_lock lock(hub_->mutex);
    if (const auto send = sends_.find(ticket); send != sends_.end()) {
      if (!send->second->matched) return false;
      sends_.erase(send);
      return true;
    }
    const auto receive = receives_.find(ticket);
    assert(receive != receives_.end());
    if (!receive->second->matched) return false;
    if (received != nullptr) *received = receive->second->received;
    receives_.erase(receive);
    return true;
  }

 private:
  std::shared_ptr<Hub> hub_;
  int rank_;
  Ticket last_ticket_ = 0;
  std::map<Ticket, std::shared_ptr<Send>> sends_;
  std::map<Ticket, std::shared_ptr<Receive>> receives_;
};

}  // namespace

std::vector<std::shared_ptr<Exchange>> make_thread_exchanges(int ranks, int ranks_per_node,
                                                             int ranks_per_host) {
  auto hub = std::make_shared<Hub>(ranks, ranks_per_node, std::min(ranks_per_host, ranks));
  std::vector<std::shared_ptr<Exchange>> exchanges;
  exchanges.reserve(static_cast<std::size_t>(ranks));
  for (int r = 0; r < ranks; ++r) exchanges.push_back(std::make_shared<ThreadExchange>(hub, r));
  return exchanges;
}

void run_ranks(int ranks, int ranks_per_node,
               const std::function<void(std::shared_ptr<Exchange>)>& body, int ranks_per_host) {
  std::vector<std::jthread> threads;
  for (auto& exchange : make_thread_exchanges(ranks, ranks_per_node, ranks_per_host)) {
    threads.emplace_back([&body, exchange] { body(exchange); });
  }
}

}  // namespace forebay
