#include "core/intercept/mpi/completed_request.hpp"

#include <memory>

#include "core/intercept/mpi/data_call.hpp"

namespace forebay {
namespace {

int query(void* extra_state, MPI_Status* status) {
  set_status(status, *static_cast<const Bytes*>(extra_state));
  status->MPI_SOURCE = MPI_UNDEFINED;
  status->MPI_TAG = MPI_UNDEFINED;
  return MPI_SUCCESS;
}

int release(void* extra_state) {
  delete static_cast<Bytes*>(extra_state);
  return MPI_SUCCESS;
}

/// A transfer that is over cannot be cancelled, and MPI_Cancel is no error.
int cancel(void* /*extra_state*/, int /*complete*/) { return MPI_SUCCESS; }

}  // namespace

int make_completed_request(Bytes moved, MPI_Request* request) {
  auto state = std::make_unique<Bytes>(moved);
  const int code = PMPI_Grequest_start(query, release, cancel, state.get(), request);
  if (code != MPI_SUCCESS) return code;
  (void)state.release();  // Now the request's.
  return PMPI_Grequest_complete(*request);
}

}  // namespace forebay
