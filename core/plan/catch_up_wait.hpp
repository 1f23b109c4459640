#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/model/extent.hpp"

namespace forebay {

/// Of several readers of a file, when the one in front should leave the fetching to those behind
/// it. What lies between them does not stay in the page cache beyond a limit; past it everybody
/// fetches for himself, which slows all down, so that they never meet again. A reader in front that
/// fetches nothing for a moment is reached soon, and from then on they go together.
///
/// It waits only for readers that can be expected to reach it in time, by what they read meanwhile,
/// as if it stood still: one that is stopped, slow, or far behind holds nobody up. All waiting
/// together takes at most 200 ms and a tenth of the time, during which the program goes on and
/// reads for itself.
class CatchUpWait {
 public:
  /// `harmless`: how much another may be behind. All amounts are of one unit of any size.
  explicit CatchUpWait(Bytes harmless) : harmless_(harmless) {}

  struct Seen {
    Bytes passed = 0;             ///< What this reader has read, bytes,
    std::int64_t reading_ns = 0;  ///< and for how long it has been reading; never decreases.
    /// Of that, what each of the others still wants; 0: it is not behind. Always in the same order.
    std::span<const Bytes> behind;
    bool is_full = false;  ///< No more stays in the page cache for them.
  };
  /// Whether it should fetch nothing now.
  ///
  /// Worked example: at 400 MB/s, another is 24 MB behind, 4 MB are harmless, and the page cache is
  /// full: one waits. 50 ms later it has read 18 MB, and could be here in another 20 ms: one waits
  /// on. At 4 MB one fetches again.
  bool waits(const Seen& seen);

 private:
  std::int64_t allowed_ns(const Seen& seen) const;
  bool is_in_reach(const Seen& seen, Bytes behind) const;
  bool anybody_arrived(const Seen& seen) const;
  bool anybody_arrives(const Seen& seen) const;
  void look(const Seen& seen);
  bool end(std::int64_t now_ns, std::int64_t pause_ns);

  Bytes harmless_;
  bool is_waiting_ = false;
  std::int64_t since_ns_ = 0;       ///< Of this wait.
  std::int64_t looked_ns_ = 0;      ///< When it was last seen how the others get on.
  std::vector<Bytes> read_then_;    ///< What each of them had read by then; -1: out of reach.
  std::int64_t waited_ns_ = 0;      ///< In all, without this one.
  std::int64_t not_before_ns_ = 0;  ///< The next.
};

}  // namespace forebay
