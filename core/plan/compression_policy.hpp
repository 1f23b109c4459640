#pragma once

#include <cstdint>

#include "core/model/extent.hpp"
#include "core/model/hints.hpp"

namespace forebay {

/// Whether messages from one node to another are worth compressing: only where the link, as
/// measured, is slower than what compression saves. A sample tells now and then; while it says no,
/// samples get rarer (back-off), so that data that does not shrink costs almost nothing.  [PAPIO:
/// Adaptive-CoMPI]
///
/// Worked example: a link of 0.1 bytes/ns (100 MB/s), lz4 at 2 ns a byte, ratio 0.5: a byte costs
/// 10 ns plain, 2 * 1.25 + 5 = 7.5 ns compressed: on. The same data over 1 byte/ns: 1 against 3:
/// off.
class CompressionPolicy {
 public:
  explicit CompressionPolicy(Toggle toggle) : toggle_(toggle) {}

  enum class Choice {
    plain,
    sample,  ///< Compress a part, tell what came of it, ask again.
    compress,
  };
  Choice next(Bytes message_bytes);

  /// A message of `wire_bytes` took `ns` from its sending until the receiver had it.
  void sent(Bytes wire_bytes, std::int64_t ns);

  /// `raw_bytes` became `wire_bytes` in `ns`; of a sample or of a whole message.
  void compressed(Bytes raw_bytes, Bytes wire_bytes, std::int64_t ns);

  bool on() const { return on_; }

 private:
  static constexpr Bytes smallest_message = 4 * KiB;
  static constexpr int longest_pause = 1024;  ///< Messages between two samples.

  Toggle toggle_;
  bool on_ = false;
  int pause_ = 0;                 ///< Messages left until the next sample.
  int next_pause_ = 4;            ///< How long the pause will be if the next sample says no.
  double link_bytes_per_ns_ = 0;  ///< Running average; 0: nothing measured.
};

}  // namespace forebay
