#include "core/engine/cache/flush_queue.hpp"

#include <algorithm>

namespace forebay {

FlushQueue::FlushQueue(StripeLayout layout, Bytes largest_unit, int first_server)
    : layout_(layout),
      unit_bytes_(std::max<Bytes>(largest_unit, 1)),
      next_server_(static_cast<std::size_t>(std::max(first_server, 0)) %
                   static_cast<std::size_t>(std::max(layout.servers, 1))),
      ready_(static_cast<std::size_t>(layout.striped() ? layout.servers : 1)) {
  if (layout_.stripe_size > 0) {
    // The largest part of a stripe that divides it evenly.
    const Bytes parts = (layout_.stripe_size + unit_bytes_ - 1) / unit_bytes_;
    Bytes even = std::max<Bytes>(parts, 1);
    while (layout_.stripe_size % even != 0) ++even;
    unit_bytes_ = layout_.stripe_size / even;
  }
  next_server_ %= ready_.size();
}

std::size_t FlushQueue::server_of(std::int64_t unit) const {
  if (!layout_.striped()) return 0;
  return static_cast<std::size_t>(unit * unit_bytes_ / layout_.stripe_size % layout_.servers);
}

void FlushQueue::hold(std::int64_t unit) {
  if (states_.emplace(unit, State::held).second) held_.push_back(unit);
}

void FlushQueue::ready(std::int64_t unit) {
  const auto [found, fresh] = states_.emplace(unit, State::ready);
  if (!fresh && found->second == State::ready) return;
  found->second = State::ready;
  ready_[server_of(unit)].push_back(unit);
  ++ready_count_;
}

void FlushQueue::release_held() {
  const std::vector<std::int64_t> held = std::move(held_);
  held_.clear();
  for (const std::int64_t unit : held) {
    const auto found = states_.find(unit);
    if (found != states_.end() && found->second == State::held) ready(unit);
  }
}

std::optional<std::int64_t> FlushQueue::pop() {
  if (ready_count_ == 0) return {};
  while (ready_[next_server_].empty()) next_server_ = (next_server_ + 1) % ready_.size();
  const std::int64_t unit = ready_[next_server_].front();
  ready_[next_server_].pop_front();
  next_server_ = (next_server_ + 1) % ready_.size();
  --ready_count_;
  states_.erase(unit);
  return unit;
}

void FlushQueue::clear() {
  states_.clear();
  held_.clear();
  for (auto& units : ready_) units.clear();
  ready_count_ = 0;
}

}  // namespace forebay
