#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>

#include "core/engine/collective/claims_message.hpp"
#include "core/model/error.hpp"
#include "core/storage/descriptor.hpp"

namespace forebay {

/// Where the process that keeps the claims of a file is to be reached by TCP, and what to say
/// there. Ranks tell it each other as it lies in memory.
struct ClaimsDoor {
  /// IPv6, in network order; those of IPv4 as ::ffff:a.b.c.d.
  using Address = std::array<std::byte, 16>;

  ClaimsToken token{};
  std::uint64_t network = 0;  ///< Names the host's network stack: loopback leads there and back.
  std::uint16_t port = 0;     ///< 0: there is no door.
  std::uint16_t count = 0;
  std::array<Address, 16> addresses{};
};

/// A socket that listens on a free port of all of this host's addresses, and the door to it.
struct ClaimsListener {
  Descriptor socket;
  ClaimsDoor door;
};
/// Errors: those of sockets.
Result<ClaimsListener> listen_for_claims();

/// A connection on which the one behind the door has answered `rank`'s greeting: its answer is
/// still to be read there. Tries all addresses, for `limit` in all. Errors: those of connecting, of
/// the address that got furthest.
Result<Descriptor> knock(const ClaimsDoor& door, int rank, std::chrono::milliseconds limit);

/// Small messages leave at once, and a peer whose host is gone is noticed within half a minute.
void tune_connection(int socket);

}  // namespace forebay
