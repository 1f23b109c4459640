/* Goal and method: intercept_cache_power_check.py. Ranks write a file in turns, collectively, and
 * sync it after each; what a sync has promised is told. Arguments: the number of turns, the file.
 */
#define _GNU_SOURCE
#include <unistd.h>

#include "tests/mpi/intercept_check.h"

enum { block = 4096, blocks = 32, mine = block * blocks };

int main(int argc, char** argv) {
  static unsigned char bytes[mine];
  MPI_Init(NULL, NULL);
  MPI_Comm_rank(MPI_COMM_WORLD, &check_rank);
  MPI_Comm_size(MPI_COMM_WORLD, &check_size);
  CHECK(argc == 3);
  MPI_File file;
  printf("process %d\n", (int)getpid());
  fflush(stdout);
  OK(MPI_File_open(MPI_COMM_WORLD, argv[2], MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file));
  check_interleave(file, 0, block);
  for (int turn = 1; turn <= atoi(argv[1]); ++turn) {
    for (int i = 0; i < mine; ++i) bytes[i] = (unsigned char)(turn * 50 + check_rank * 7 + i % 50);
    OK(MPI_File_write_at_all(file, 0, bytes, mine, MPI_BYTE, MPI_STATUS_IGNORE));
    OK(MPI_File_sync(file));
    MPI_Barrier(MPI_COMM_WORLD);
    if (check_rank == 0) {
      printf("synced %d\n", turn);
      fflush(stdout);
    }
  }
  OK(MPI_File_close(&file));
  MPI_Finalize();
  return 0;
}
