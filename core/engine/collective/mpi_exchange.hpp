#pragma once

#include <mpi.h>

#include <climits>
#include <cstdint>
#include <memory>

#include "core/engine/collective/exchange.hpp"

namespace forebay {

/// The exchange over `communicator`, which it takes over (a duplicate that nobody else uses) and
/// frees when destroyed; collective. Nodes are the ranks that see one /dev/shm, or, for tests on
/// one machine, each `ranks_per_node` consecutive ranks (0: real nodes). Calls MPI under its PMPI
/// names, so that a profiler does not see Forebay's own traffic as the program's. `most_gathered`:
/// bytes that one MPI call may gather or broadcast, at most what an int counts; less for tests.
/// `rider`, if any, travels with what ranks tell each other at the making and comes back as the
/// greatest of all ranks': a word that costs no message of its own.
std::shared_ptr<Exchange> make_mpi_exchange(MPI_Comm communicator, int ranks_per_node,
                                            Bytes most_gathered = INT_MAX,
                                            std::int64_t* rider = nullptr);

}  // namespace forebay
