#pragma once

#include <memory>
#include <string>

#include "core/engine/collective/claims.hpp"
#include "core/engine/collective/claims_server.hpp"
#include "core/engine/collective/exchange.hpp"
#include "core/engine/collective/shared_memory.hpp"
#include "core/model/error.hpp"

namespace forebay {

/// The claims of one file as a rank has them: in memory of rank 0's host, or by a connection to it.
struct OpenedClaims {
  std::shared_ptr<SharedMemory> memory;  ///< Null on other hosts.
  /// On rank 0, where there are other hosts. To be retired.
  std::unique_ptr<ClaimsServer> server;
  std::unique_ptr<Claims> claims;
  std::string name;  ///< Unique for all time, and the same on all ranks.
};

/// Collective. `failure`: why this rank wants none. Errors are the same on all ranks: that of the
/// lowest rank that has one.
Result<OpenedClaims> open_claims(Exchange& exchange, Bytes granule, Error failure);

}  // namespace forebay
