#include "testbed/server_queue.hpp"

#include <algorithm>
#include <cassert>

namespace forebay::testbed {
namespace {

__extension__ using Wide = __int128;

/// The time that `bytes` take, rounded up to whole nanoseconds, without overflow for any file size.
Time transfer_time(Bytes bytes, Bytes bytes_per_s) {
  const Bytes seconds = bytes / bytes_per_s;
  const Bytes rest = bytes % bytes_per_s;
  // rest < bytes_per_s, so the quotient is below 1e9; the product may pass 2^63 from 9.2 GB/s on.
  const auto rest_ns = (static_cast<Wide>(rest) * ns_per_s + bytes_per_s - 1) / bytes_per_s;
  return Time(seconds * ns_per_s + static_cast<Bytes>(rest_ns));
}

}  // namespace

ServerQueue::ServerQueue(const ServerParameters& parameters) : parameters_(parameters) {
  assert(parameters.bandwidth_bytes_per_s >= 1 && parameters.slots >= 1);
}

Time ServerQueue::submit(Time now, Bytes bytes, Time extra) {
  const auto slots = static_cast<std::size_t>(parameters_.slots);
  while (answers_.size() > slots && answers_.front() <= now) answers_.pop_front();
  const Time slot_free = answers_.size() < slots ? now : answers_[answers_.size() - slots];
  const Time service = transfer_time(bytes, parameters_.bandwidth_bytes_per_s) + extra;
  free_ = std::max({now, slot_free, free_}) + service;
  busy_ += service;
  answers_.push_back(free_ + parameters_.latency);
  return answers_.back();
}

std::size_t ServerQueue::unanswered(Time now) const {
  return static_cast<std::size_t>(answers_.end() -
                                  std::upper_bound(answers_.begin(), answers_.end(), now));
}

}  // namespace forebay::testbed
