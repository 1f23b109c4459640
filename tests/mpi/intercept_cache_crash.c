/* Goal and method: intercept_cache_crash_check.py. Ranks write a file three times, collectively,
 * and then, in part, each by itself; the rank that the last argument but one names then kills
 * itself, with all of it in logs. -1: all of them end by MPI_Abort. */
#define _GNU_SOURCE
#include <signal.h>
#include <unistd.h>

#include "tests/mpi/intercept_check.h"

enum { block = 1000, blocks = 32 };

int main(int argc, char** argv) {
  MPI_Init(NULL, NULL);
  CHECK(argc == 3);
  MPI_Comm_rank(MPI_COMM_WORLD, &check_rank);
  MPI_Comm_size(MPI_COMM_WORLD, &check_size);
  const int victim = atoi(argv[1]);
  MPI_File file;
  OK(MPI_File_open(MPI_COMM_WORLD, argv[2], MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file));
  check_interleave(file, 0, block);
  static unsigned char bytes[block * blocks];
  for (int turn = 1; turn <= 3; ++turn) {
    for (int i = 0; i < block * blocks; ++i) {
      bytes[i] = (unsigned char)(turn * 60 + check_rank * 7 + i % 50);
    }
    OK(MPI_File_write_at_all(file, 0, bytes, block * blocks, MPI_BYTE, MPI_STATUS_IGNORE));
  }
  memset(bytes, 250 + check_rank, block);
  /* One behind the other: they write into one granule, and who writes last holds what is dirty. */
  for (int rank = 0; rank < check_size; ++rank) {
    if (rank == check_rank) {
      OK(MPI_File_write_at(file, 0, bytes, block, MPI_BYTE, MPI_STATUS_IGNORE));
    }
    MPI_Barrier(MPI_COMM_WORLD);
  }
  if (victim < 0) MPI_Abort(MPI_COMM_WORLD, 1);
  if (check_rank == victim) kill(getpid(), SIGKILL);
  for (;;) pause();
}
