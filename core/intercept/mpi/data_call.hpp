#pragma once

#include <mpi.h>

#include "core/intercept/mpi/open_file.hpp"
#include "core/intercept/mpi/shadow_file.hpp"

namespace forebay {

enum class Direction { read, write };

/// From where in the file view.
enum class Pointer { explicit_offset, individual, shared };

/// With whom. `independent` is also the way of nonblocking collective calls, which may not wait for
/// other ranks before they return.
enum class Manner { independent, collective };

/// One data call of the program, whatever its name. A collective call by the shared pointer is an
/// ordered one: ranks take their parts in rank order.
struct DataCall {
  Direction direction;
  Pointer pointer;
  Manner manner;
  MPI_Offset offset;  ///< In etypes; of an explicit offset only.
  void* buffer;       ///< Not written through when direction is write.
  MPI_Count count;
  MPI_Datatype datatype;
};

/// Carries the call out. On an invalid argument a collective call is still joined, with nothing to
/// move, so that the other ranks do not wait for ever; the error is this rank's alone.
Outcome carry_out(OpenFile& file, const DataCall& call);

/// Makes MPI_Get_count and MPI_Get_elements of `status` tell `moved` bytes of any datatype.
void set_status(MPI_Status* status, Bytes moved);

}  // namespace forebay
