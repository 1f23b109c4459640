/* A run with known figures for intercept_report_check.py: every rank writes 1000 ints in one
 * collective and one independent call, and reads them in two. */
#define _GNU_SOURCE
#include "tests/mpi/intercept_check.h"

int main(int argc, char** argv) {
  static int data[1000], back[1000];
  check_start(argc, argv, "report");
  for (int i = 0; i < 1000; ++i) data[i] = check_rank * 1000 + i;
  MPI_File file = check_open(0);
  const MPI_Offset mine = 4000 * (MPI_Offset)check_rank;
  OK(MPI_File_write_at_all(file, mine, data, 500, MPI_INT, MPI_STATUS_IGNORE));
  OK(MPI_File_write_at(file, mine + 2000, data + 500, 500, MPI_INT, MPI_STATUS_IGNORE));
  OK(MPI_File_sync(file));
  OK(MPI_File_read_at_all(file, mine, back, 500, MPI_INT, MPI_STATUS_IGNORE));
  OK(MPI_File_read_at(file, mine + 2000, back + 500, 500, MPI_INT, MPI_STATUS_IGNORE));
  CHECK(memcmp(data, back, sizeof data) == 0);
  OK(MPI_File_close(&file));
  return check_finish();
}
