#pragma once

#include <mpi.h>

#include <cstdint>
#include <sstream>
#include <string>
#include <vector>

namespace random_access {

/// What one rank saw, a line a step. A value that differs from what the model says reads
/// `name=seen!expected`; one that the model has no opinion on, `name~seen`.
class Observations {
 public:
  Observations(int case_number, int rank) : case_(case_number), rank_(rank) {}

  void begin(int step, const std::string& what);
  void expect(const char* name, std::int64_t seen, std::int64_t expected);
  void expect_class(const char* name, int code, int expected_class);
  void note_class(const char* name, int code);
  /// Whole buffers, told by a hash and, where they differ, by the first byte that does.
  void expect_bytes(const char* name, const std::vector<std::uint8_t>& seen,
                    const std::vector<std::uint8_t>& expected);
  void end();

  /// Prints the lines of all ranks on rank 0, rank by rank. Collective.
  void print(MPI_Comm comm);

 private:
  int case_;
  int rank_;
  std::ostringstream line_;
  std::string text_;
};

}  // namespace random_access
