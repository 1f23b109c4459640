#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <unordered_map>
#include <vector>

#include "core/model/extent.hpp"
#include "core/model/stripe_layout.hpp"

namespace forebay {

/// In which order the parts of a file are flushed. A unit is what one write covers: a stripe, or a
/// part of one. Units come out in the order in which they became ready, server after server, so
/// that consecutive writes go to different servers; each writer starts with another server.
/// Worked example: 4 servers, units 0, 1, 2, 4, 5 ready, first server 1: 1, 2, 0, 5, 4.
///
/// A unit is in the queue once. It is held while all that is dirty in it may still be withdrawn.
class FlushQueue {
 public:
  /// Units are stripes, cut so that none is larger than `largest_unit`; without stripes they have
  /// that size.
  FlushQueue(StripeLayout layout, Bytes largest_unit, int first_server);

  Bytes unit_bytes() const { return unit_bytes_; }
  std::int64_t unit_of(Bytes offset) const { return offset / unit_bytes_; }
  Extent extent_of(std::int64_t unit) const { return {unit * unit_bytes_, unit_bytes_}; }

  void hold(std::int64_t unit);   ///< No change if it is ready.
  void ready(std::int64_t unit);  ///< Also one that was held.
  void release_held();            ///< All that are held are ready, in the order they came.

  bool empty() const { return ready_count_ == 0; }
  std::optional<std::int64_t> pop();
  void clear();

 private:
  enum class State { held, ready };
  std::size_t server_of(std::int64_t unit) const;

  StripeLayout layout_;
  Bytes unit_bytes_;
  std::size_t next_server_;
  std::unordered_map<std::int64_t, State> states_;
  std::vector<std::int64_t> held_;               ///< Some of them are ready by now.
  std::vector<std::deque<std::int64_t>> ready_;  ///< By server.
  std::size_t ready_count_ = 0;
};

}  // namespace forebay
