#pragma once

#include <mpi.h>

#include <memory>

#include "core/engine/collective/exchange.hpp"

namespace forebay {

/// The exchange over which the ranks of `comm` talk while they have one file open; null where
/// MPI_File_open would refuse `comm`. Collective.
///
/// To make one costs a communicator, which takes longer than to open a file. So an exchange waits
/// at the program's communicator, as an attribute, for the next file that is opened on it, and goes
/// when the communicator goes. Each open file has an exchange of its own. Where threads may open
/// and close at the same time, ranks could take up different ones: there each is new.
std::shared_ptr<Exchange> exchange_for(MPI_Comm comm);

}  // namespace forebay
