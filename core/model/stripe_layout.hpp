#pragma once

#include "core/model/extent.hpp"

namespace forebay {

/// How a file is spread over storage servers. On a local file system there is one server and no
/// stripe: `stripe_size` is 0.
/// Worked example: stripe_size = 64 KiB, servers = 4: byte 300,000 is in stripe 4, on server 0.
struct StripeLayout {
  Bytes stripe_size = 0;  ///< Bytes; 0 = not striped. MPI's hint calls it striping_unit.
  int servers = 1;        ///< Stripe count. MPI's hint calls it striping_factor.
  bool lock_conflicts =
      false;  ///< Writers that share a stripe make each other wait (extent locks).
  /// The kernel lets one writer at a time into a file, as Linux does for its page cache: a second
  /// one on the same machine gains nothing and disturbs the first.
  bool one_writer = false;

  constexpr bool striped() const { return stripe_size > 0 && servers > 1; }
  constexpr bool operator==(const StripeLayout&) const = default;
};

}  // namespace forebay
