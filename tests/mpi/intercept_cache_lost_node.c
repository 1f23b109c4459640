/* Goal and method: intercept_cache_lost_node_check.py. Ranks write a file over and over,
 * collectively, into logs on nodes of their own. Arguments: what to do, and the file.
 *   commit: kill the program with all of it in logs; begin: the same, with all of it written in a
 *   delay; end: the same, with the delay ended; close: close the file; finalize: do not. */
#define _GNU_SOURCE
#include <signal.h>
#include <unistd.h>

#include "tests/mpi/intercept_check.h"

enum { block = 4096, blocks = 64, turns = 8 };

static MPI_File file;

static void delay(const char* value) {
  MPI_Info info;
  OK(MPI_Info_create(&info));
  OK(MPI_Info_set(info, "forebay_delayed", value));
  OK(MPI_File_set_info(file, info));
  OK(MPI_Info_free(&info));
}

int main(int argc, char** argv) {
  MPI_Init(NULL, NULL);
  CHECK(argc == 3);
  MPI_Comm_rank(MPI_COMM_WORLD, &check_rank);
  MPI_Comm_size(MPI_COMM_WORLD, &check_size);
  const int delayed = strcmp(argv[1], "begin") == 0 || strcmp(argv[1], "end") == 0;
  OK(MPI_File_open(MPI_COMM_WORLD, argv[2], MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file));
  check_interleave(file, 0, block);
  if (delayed) delay("begin");
  static unsigned char bytes[block * blocks];
  for (int turn = 1; turn <= turns; ++turn) {
    for (int i = 0; i < block * blocks; ++i) {
      bytes[i] = (unsigned char)(turn * 30 + check_rank * 7 + i % 50);
    }
    OK(MPI_File_write_at_all(file, 0, bytes, block * blocks, MPI_BYTE, MPI_STATUS_IGNORE));
  }
  if (strcmp(argv[1], "end") == 0) delay("end");
  if (strcmp(argv[1], "close") == 0) {
    OK(MPI_File_close(&file));
    MPI_Finalize();
    return 0;
  }
  if (strcmp(argv[1], "finalize") == 0) {
    MPI_Finalize();
    return 0;
  }
  MPI_Barrier(MPI_COMM_WORLD);
  if (check_rank == 0) kill(getpid(), SIGKILL);
  for (;;) pause();
}
