#pragma once

#include <mpi.h>

#include <chrono>
#include <memory>

#include "core/engine/collective/exchange.hpp"

namespace forebay {

/// Threads of this process may be in MPI calls at the same time.
bool threads_call_at_once();

/// Ranks that open a file together.
struct Opening {
  /// Over which they talk while the file is open; null where MPI_File_open would refuse their
  /// communicator.
  std::shared_ptr<Exchange> exchange;
  /// There are communicators enough already, and `exchange` is each rank's own; the same on every
  /// rank.
  bool crowded = false;
  /// The environment of some rank declares hints; the same on every rank.
  bool environment_declares = false;
  /// When the opening began. Where it began with a new exchange: when the ranks had met, because
  /// to wait for one that comes late is not what an opening costs.
  std::chrono::steady_clock::time_point begun;
};

/// What ranks need to open a file on `comm`. Collective.
///
/// To make one costs a communicator, which takes longer than to open a file. So an exchange waits
/// at the program's communicator, as an attribute, for the next file that is opened on it, and goes
/// when the communicator goes. Each open file has an exchange of its own. Where threads may open
/// and close at the same time, ranks could take up different ones: there each is new.
///
/// MPIs have few communicators (MPICH about 2000), and take one themselves for each open file. So a
/// rank that opens a file by itself gets an exchange without one, no more than some wait, and with
/// many in use an opening is crowded.
Opening begin_opening(MPI_Comm comm);

}  // namespace forebay
