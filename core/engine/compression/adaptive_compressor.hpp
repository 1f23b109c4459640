#pragma once

#include <sys/uio.h>

#include <chrono>
#include <cstddef>
#include <mutex>
#include <span>
#include <vector>

#include "core/model/extent.hpp"
#include "core/plan/compression_policy.hpp"

namespace forebay {

/// Compresses blocks on one way, to a peer or to a device, where that pays (lz4). Thread-safe; what
/// takes time is done outside of its lock.
class AdaptiveCompressor {
 public:
  explicit AdaptiveCompressor(Toggle toggle) : toggle_(toggle), policy_(toggle) {}

  /// A compressed copy, in `storage`, of what `pieces` hold one behind the other; smaller than
  /// that. Empty: it is to go as it is.
  std::span<const std::byte> encode(std::span<const iovec> pieces, std::vector<std::byte>& storage);

  /// `bytes` took `elapsed` on the way: how fast it is says whether compression pays.
  void passed(Bytes bytes, std::chrono::nanoseconds elapsed);

  bool disabled() const { return toggle_ == Toggle::disable; }
  bool on() const;

 private:
  std::span<const std::byte> measured(std::span<const iovec> pieces, Bytes length,
                                      std::vector<std::byte>& storage);

  const Toggle toggle_;
  mutable std::mutex mutex_;
  CompressionPolicy policy_;  ///< Guarded by mutex_.
};

/// What encode() made of as many bytes as `plain` has, back into them. False: it is something else.
bool expand(std::span<const std::byte> compressed, std::span<std::byte> plain);

}  // namespace forebay
