/* Goal and method: intercept_cache_hints_check.py. Ranks write a file twice, collectively, with the
 * cache that FOREBAY_HINTS asks for. Arguments: how it goes on, and the file.
 *   close: close the file; read: all but rank 0 read what they wrote before they close it; sync:
 *   make a sync, and die; await: die when all is in the file, which nobody asks for; die: at once.
 *   All ranks die, with the file open. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <unistd.h>

#include "tests/mpi/intercept_check.h"

enum { block = 1000, blocks = 32, mine = block * blocks, turns = 2 };

static unsigned char byte_of(int rank, int turn, int i) {
  return (unsigned char)(turn * 60 + rank * 7 + i % 50);
}

static void write_turn(MPI_File file, int turn) {
  static unsigned char bytes[mine];
  for (int i = 0; i < mine; ++i) bytes[i] = byte_of(check_rank, turn, i);
  OK(MPI_File_write_at_all(file, 0, bytes, mine, MPI_BYTE, MPI_STATUS_IGNORE));
}

static void expect_last_turn(MPI_File file) {
  static unsigned char bytes[mine];
  memset(bytes, 0, sizeof bytes);
  OK(MPI_File_read_at(file, 0, bytes, mine, MPI_BYTE, MPI_STATUS_IGNORE));
  for (int i = 0; i < mine; ++i) CHECK(bytes[i] == byte_of(check_rank, turns, i));
}

/* Read without the MPI. */
static int is_in_file(int descriptor, int rank) {
  unsigned char bytes[block];
  for (int i = 0; i < blocks; ++i) {
    const off_t at = (off_t)block * (i * check_size + rank);
    if (pread(descriptor, bytes, block, at) != block) return 0;
    for (int j = 0; j < block; ++j) {
      if (bytes[j] != byte_of(rank, turns, i * block + j)) return 0;
    }
  }
  return 1;
}

int main(int argc, char** argv) {
  MPI_Init(NULL, NULL);
  CHECK(argc == 3);
  MPI_Comm_rank(MPI_COMM_WORLD, &check_rank);
  MPI_Comm_size(MPI_COMM_WORLD, &check_size);
  MPI_File file;
  OK(MPI_File_open(MPI_COMM_WORLD, argv[2], MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file));
  check_interleave(file, 0, block);
  for (int turn = 1; turn <= turns; ++turn) write_turn(file, turn);
  if (strcmp(argv[1], "close") == 0 || strcmp(argv[1], "read") == 0) {
    OK(MPI_File_sync(file));
    if (strcmp(argv[1], "read") == 0 && check_rank != 0) expect_last_turn(file);
    OK(MPI_File_close(&file));
    MPI_Finalize();
    return 0;
  }
  if (strcmp(argv[1], "sync") == 0) OK(MPI_File_sync(file));
  if (strcmp(argv[1], "await") == 0) {
    const int descriptor = open(argv[2], O_RDONLY);
    CHECK(descriptor >= 0);
    for (int rank = 0; rank < check_size; ++rank) {
      while (!is_in_file(descriptor, rank)) sched_yield();
    }
  }
  MPI_Barrier(MPI_COMM_WORLD);
  kill(getpid(), SIGKILL);
  return 0;
}
