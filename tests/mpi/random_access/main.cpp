// random_access [--first SEED] [--count N] [--stride N] [--open-holes]
//               [--talkative] DIRECTORY
//
// Goal: whatever an MPI program may do with a file has the outcome that the MPI standard says, with
// and without Forebay. Method: cases drawn from seeds, the same on every rank, carried out by MPI
// and in a model of the standard that works byte by byte; everything a program can see is printed.
#include <mpi.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "tests/mpi/random_access/random_case.hpp"

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  // A datatype that an MPI cannot make is found by type_agrees().
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  std::uint64_t first = 1, count = 1, stride = 1;
  random_access::RandomCase::Options options;
  for (int i = 1; i < argc; ++i) {
    const bool value_follows = i + 1 < argc;
    if (std::strcmp(argv[i], "--first") == 0 && value_follows) {
      first = std::strtoull(argv[++i], nullptr, 10);
    } else if (std::strcmp(argv[i], "--count") == 0 && value_follows) {
      count = std::strtoull(argv[++i], nullptr, 10);
    } else if (std::strcmp(argv[i], "--stride") == 0 && value_follows) {
      stride = std::strtoull(argv[++i], nullptr, 10);
    } else if (std::strcmp(argv[i], "--talkative") == 0) {
      options.talkative = true;
    } else if (std::strcmp(argv[i], "--open-holes") == 0) {
      options.open_holes = true;
    } else {
      options.directory = argv[i];
    }
  }
  if (options.directory.empty()) {
    std::fprintf(stderr,
                 "usage: random_access [--first SEED] [--count N] [--stride N] "
                 "[--open-holes] [--talkative] DIRECTORY\n");
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  for (std::uint64_t i = 0; i < count; ++i) {
    random_access::RandomCase(first + i * stride, options).run();
  }
  MPI_Finalize();
}
