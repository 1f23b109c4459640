/* A file as a checkpoint's for intercept_cache_absorbed_check.py: step by step a header, which one
 * rank writes in a collective call, and a variable of which all ranks write parts, one behind the
 * other. Before the file is closed, each rank reads what the next one wrote. */
#define _GNU_SOURCE
#include "tests/mpi/intercept_check.h"

enum { steps = 24, header = 100, part = 100000 };

static unsigned char bytes[part];

static void fill(int step, int rank, int length) {
  for (int i = 0; i < length; ++i) bytes[i] = (unsigned char)(step * 31 + rank * 57 + i % 251);
}

static MPI_Offset offset_of(int step, int rank) {
  return step * (MPI_Offset)(header + check_size * part) + header + rank * (MPI_Offset)part;
}

int main(int argc, char** argv) {
  static unsigned char back[part];
  check_start(argc, argv, "absorbed");
  MPI_File file = check_open(0);
  for (int step = 0; step < steps; ++step) {
    const int length = check_rank == step % check_size ? header : 0;
    fill(step, 100, length);
    OK(MPI_File_write_at_all(file, offset_of(step, 0) - header, bytes, length, MPI_BYTE,
                             MPI_STATUS_IGNORE));
    fill(step, check_rank, part);
    OK(MPI_File_write_at_all(file, offset_of(step, check_rank), bytes, part, MPI_BYTE,
                             MPI_STATUS_IGNORE));
  }
  MPI_Barrier(MPI_COMM_WORLD);
  const int next = (check_rank + 1) % check_size;
  for (int step = 0; step < steps; ++step) {
    fill(step, next, part);
    OK(MPI_File_read_at(file, offset_of(step, next), back, part, MPI_BYTE, MPI_STATUS_IGNORE));
    CHECK(memcmp(bytes, back, part) == 0);
  }
  OK(MPI_File_close(&file));
  MPI_Finalize(); /* The file is looked at afterwards. */
  return 0;
}
