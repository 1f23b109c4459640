// The MPI environment of a proxy, from MPI_Init to MPI_Finalize, and how it fails: a file call that
// returns an error is named with rank and reason, and the whole job ends with status 1.
#pragma once

#include <mpi.h>

#include <string>

namespace workload {

/// The first object of every main(), so that it is the last to go.
class Session {
 public:
  Session(int& argc, char**& argv);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  int rank() const { return rank_; }
  int ranks() const { return ranks_; }

 private:
  int rank_ = 0;
  int ranks_ = 1;
};

/// Ends the job with status 1 unless `code` is MPI_SUCCESS. `call` is the name of what was called.
void check(int code, const char* call, const std::string& path);

/// Ends the job with status 1, after a line that names the rank.
[[noreturn]] void fail(const std::string& message);

}  // namespace workload
