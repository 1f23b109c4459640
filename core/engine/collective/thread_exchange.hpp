#pragma once

#include <functional>
#include <limits>
#include <memory>
#include <vector>

#include "core/engine/collective/exchange.hpp"

namespace forebay {

/// The in-process twin of MpiExchange: ranks are threads of one process, so that the engine runs
/// under sanitizers and property tests without an MPI library.
///
/// What it keeps of the real thing: calls match in order; a synchronous send completes only when
/// its receive is posted; each node has shared regions of its own, which ranks of other nodes do
/// not see. What it does not model: the cost of anything, and a rank that dies.
///
/// Makes one exchange per rank; `ranks_per_node` consecutive ranks are a node, and `ranks_per_host`
/// of them say that they are a host: of all, if no more is said.
std::vector<std::shared_ptr<Exchange>> make_thread_exchanges(
    int ranks, int ranks_per_node, int ranks_per_host = std::numeric_limits<int>::max());

/// Runs `body(exchange)` on one thread per rank and returns when all have returned.
void run_ranks(int ranks, int ranks_per_node,
               const std::function<void(std::shared_ptr<Exchange>)>& body,
               int ranks_per_host = std::numeric_limits<int>::max());

}  // namespace forebay
