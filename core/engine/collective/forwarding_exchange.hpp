#pragma once

#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "core/engine/collective/exchange.hpp"

namespace forebay {

/// An exchange that is another one, but for what a derived class does differently: for tests.
class ForwardingExchange : public Exchange {
 public:
  int rank() const override { return inner_->rank(); }
  int size() const override { return inner_->size(); }
  const NodeMap& nodes() const override { return inner_->nodes(); }
  const std::vector<int>& host_of_rank() const override { return inner_->host_of_rank(); }
  bool cores_are_shared() const override { return inner_->cores_are_shared(); }
  void barrier() override { inner_->barrier(); }
  void all_reduce(std::span<std::int64_t> values, Reduce op) override {
    inner_->all_reduce(values, op);
  }
  void all_gather(std::span<const std::byte> mine, std::span<std::byte> all) override {
    inner_->all_gather(mine, all);
  }
  std::vector<std::vector<std::byte>> all_gather_varying(std::span<const std::byte> mine) override {
    return inner_->all_gather_varying(mine);
  }
  std::int64_t exclusive_sum(std::int64_t value) override { return inner_->exclusive_sum(value); }
  Result<std::unique_ptr<SharedRegion>> share(Bytes size) override { return inner_->share(size); }
  Ticket send(int to, int tag, std::span<const std::byte> data) override {
    return inner_->send(to, tag, data);
  }
  Ticket receive(int from, int tag, std::span<std::byte> data) override {
    return inner_->receive(from, tag, data);
  }
  bool done(Ticket ticket, Bytes* received) override { return inner_->done(ticket, received); }
  Bell* bell(int rank) override { return inner_->bell(rank); }

 protected:
  explicit ForwardingExchange(std::shared_ptr<Exchange> inner) : inner_(std::move(inner)) {}

 private:
  const std::shared_ptr<Exchange> inner_;
};

}  // namespace forebay
