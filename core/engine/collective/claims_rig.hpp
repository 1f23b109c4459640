#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "core/engine/collective/claims_server.hpp"
#include "core/engine/collective/remote_claims.hpp"
#include "core/engine/collective/shared_claims.hpp"
#include "core/engine/collective/shared_memory.hpp"

// What tests of claims share.

namespace forebay {

constexpr Bytes claims_granule = 100;

/// The claims of some ranks of one process: those of `remote` as if they were on other hosts.
struct ClaimsRig {
  ClaimsRig(int count, std::vector<int> elsewhere) : ranks(count), remote(std::move(elsewhere)) {
    auto made = SharedMemory::create(SharedClaims::bytes(ranks));
    EXPECT_TRUE(made);
    memory = std::move(*made);
    memory->unlink();
    if (remote.empty()) return;
    auto started = ClaimsServer::start(memory, ranks, claims_granule, remote);
    EXPECT_TRUE(started);
    server = std::move(*started);
  }

  std::unique_ptr<Claims> rank(int rank) const {
    if (std::ranges::find(remote, rank) == remote.end()) {
      return std::make_unique<SharedClaims>(memory->bytes(), ranks, rank, claims_granule);
    }
    auto connected = RemoteClaims::connect(server->door(), rank, claims_granule);
    EXPECT_TRUE(connected) << to_string(connected.error());
    return std::move(*connected);
  }

  int ranks;
  std::vector<int> remote;
  std::shared_ptr<SharedMemory> memory;
  std::unique_ptr<ClaimsServer> server;
};

}  // namespace forebay
