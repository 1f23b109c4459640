/* Goal and method: intercept_cache_killed_check.py. Ranks write a file in turns, collectively; from
 * some moment on the rank that is to die counts its calls that change files, and dies at one of
 * them. Arguments: the moment ("write", "sync", "close", "drain"), the rank, the number of the
 * call, the file, and a FIFO, if they are to wait with something in their logs until it was opened
 * and closed. */
#define _GNU_SOURCE
#include <unistd.h>

#include "tests/mpi/intercept_check.h"

void die_at_call(int number);

enum { block = 4096, blocks = 64, mine = block * blocks };

static void write_turn(MPI_File file, int turn) {
  static unsigned char bytes[mine];
  for (int i = 0; i < mine; ++i) {
    bytes[i] = (unsigned char)(turn * 100 + check_rank * 7 + i % 50);
  }
  OK(MPI_File_write_at_all(file, 0, bytes, mine, MPI_BYTE, MPI_STATUS_IGNORE));
}

static void wait_for(const char* fifo) {
  if (check_rank == 0) {
    FILE* end = fopen(fifo, "r");
    CHECK(end != NULL && fgetc(end) == EOF);
    fclose(end);
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char** argv) {
  MPI_Init(NULL, NULL);
  MPI_Comm_rank(MPI_COMM_WORLD, &check_rank);
  MPI_Comm_size(MPI_COMM_WORLD, &check_size);
  CHECK(argc == 5 || argc == 6);
  const char* moment = argv[1];
  const int dies = check_rank == atoi(argv[2]);
  const int number = atoi(argv[3]);
  MPI_File file;
  OK(MPI_File_open(MPI_COMM_WORLD, argv[4], MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file));
  check_interleave(file, 0, block);
  write_turn(file, 0);
  MPI_Barrier(MPI_COMM_WORLD);
  if (argc == 6) wait_for(argv[5]);
  if (dies && strcmp(moment, "write") == 0) die_at_call(number);
  write_turn(file, 1);
  MPI_Barrier(MPI_COMM_WORLD);
  if (dies && strcmp(moment, "write") != 0) die_at_call(number);
  if (strcmp(moment, "sync") == 0) {
    OK(MPI_File_sync(file));
    if (dies) die_at_call(-2); /* None any more. */
  }
  OK(MPI_File_close(&file));
  MPI_Finalize();
  return 0;
}
