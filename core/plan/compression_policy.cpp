#include "core/plan/compression_policy.hpp"

#include <algorithm>

namespace forebay {

CompressionPolicy::Choice CompressionPolicy::next(Bytes message_bytes) {
  if (toggle_ == Toggle::disable || message_bytes < smallest_message) return Choice::plain;
  if (toggle_ == Toggle::enable || on_) return Choice::compress;
  if (link_bytes_per_ns_ <= 0) return Choice::plain;  // The link is measured first.
  if (pause_ > 0) {
    --pause_;
    return Choice::plain;
  }
  return Choice::sample;
}

void CompressionPolicy::sent(Bytes wire_bytes, std::int64_t ns) {
  if (wire_bytes < smallest_message) return;
  const double speed =
      static_cast<double>(wire_bytes) / static_cast<double>(std::max<std::int64_t>(1, ns));
  constexpr double newest_weight = 0.25;
  link_bytes_per_ns_ = link_bytes_per_ns_ <= 0
                           ? speed
                           : (1 - newest_weight) * link_bytes_per_ns_ + newest_weight * speed;
}

void CompressionPolicy::compressed(Bytes raw_bytes, Bytes wire_bytes, std::int64_t ns) {
  const double raw = static_cast<double>(raw_bytes);
  const double ratio = static_cast<double>(wire_bytes) / raw;
  // lz4 expands about four times as fast as it compresses.
  const double effort_ns = 1.25 * static_cast<double>(ns) / raw;
  on_ = link_bytes_per_ns_ > 0 && effort_ns + ratio / link_bytes_per_ns_ < 1 / link_bytes_per_ns_;
  if (on_) {
    next_pause_ = 4;
    return;
  }
  pause_ = next_pause_;
  next_pause_ = std::min(2 * next_pause_, longest_pause);
}

}  // namespace forebay
