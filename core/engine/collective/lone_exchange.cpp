#include "core/engine/collective/lone_exchange.hpp"

#include <algorithm>
#include <cassert>

#include "core/engine/collective/shared_memory.hpp"

namespace forebay {
namespace {

class LoneExchange final : public Exchange {
 public:
  int rank() const override { return 0; }
  int size() const override { return 1; }
  const NodeMap& nodes() const override { return nodes_; }
  const std::vector<int>& host_of_rank() const override { return nodes_.node_of_rank; }
  bool cores_are_shared() const override { return false; }

  void barrier() override {}
  void all_reduce(std::span<std::int64_t> /*values*/, Reduce /*op*/) override {}
  void all_gather(std::span<const std::byte> mine, std::span<std::byte> all) override {
    std::ranges::copy(mine, all.begin());
  }
  std::vector<std::vector<std::byte>> all_gather_varying(std::span<const std::byte> mine) override {
    return {std::vector<std::byte>(mine.begin(), mine.end())};
  }
  std::int64_t exclusive_sum(std::int64_t /*value*/) override { return 0; }

  Result<std::unique_ptr<SharedRegion>> share(Bytes size) override {
    auto made = SharedMemory::create(size);
    if (!made) return tl::unexpected(made.error());
    (*made)->unlink();
    return std::unique_ptr<SharedRegion>(std::move(*made));
  }

  // Messages go to other nodes, and there is one.
  Ticket send(int /*to*/, int /*tag*/, std::span<const std::byte> /*data*/) override {
    assert(false && "nobody to send to");
    return 0;
  }
  Ticket receive(int /*from*/, int /*tag*/, std::span<std::byte> /*data*/) override {
    assert(false && "nobody to receive from");
    return 0;
  }
  bool done(Ticket /*ticket*/, Bytes* /*received*/) override {
    assert(false && "no message is under way");
    return true;
  }

 private:
  const NodeMap nodes_{.node_of_rank = {0}, .ranks_of_node = {std::vector<int>{0}}};
};

}  // namespace

std::shared_ptr<Exchange> make_lone_exchange() { return std::make_shared<LoneExchange>(); }

}  // namespace forebay
