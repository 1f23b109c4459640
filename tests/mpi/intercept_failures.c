/* A call of each rank that the file system refuses, for intercept_failures_check.py: no file may
 * grow beyond 4 KiB for a while. */
#define _GNU_SOURCE
#include <signal.h>
#include <sys/resource.h>

#include "tests/mpi/intercept_check.h"

int main(int argc, char** argv) {
  static char data[8192];
  check_start(argc, argv, "failures");
  MPI_File file = check_open(0);
  struct rlimit limit;
  getrlimit(RLIMIT_FSIZE, &limit);
  const rlim_t before = limit.rlim_cur;
  limit.rlim_cur = 4096;
  signal(SIGXFSZ, SIG_IGN); /* The call then fails with EFBIG. */
  setrlimit(RLIMIT_FSIZE, &limit);
  FAILS(MPI_ERR_IO,
        MPI_File_write_at(file, 8192 * (check_rank + 1), data, 8192, MPI_BYTE, MPI_STATUS_IGNORE));
  limit.rlim_cur = before;
  setrlimit(RLIMIT_FSIZE, &limit); /* The report is a file as well. */
  OK(MPI_File_write_at(file, 0, data, 10, MPI_BYTE, MPI_STATUS_IGNORE));
  OK(MPI_File_close(&file));
  return check_finish();
}
