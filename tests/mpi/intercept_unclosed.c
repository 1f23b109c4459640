/* What intercept_unclosed_check.py looks for in the report: a cache that rank 1 alone gives up, as
 * its log may not be made; and files that the program never closes, with a cache and without. */
#define _GNU_SOURCE
#include <signal.h>
#include <sys/resource.h>

#include "tests/mpi/intercept_check.h"

enum { part = 4096, parts = 4 };

/* The ranks' parts in turn. */
static MPI_File written(const char* name, const char* logs) {
  char path[4200], data[part];
  snprintf(path, sizeof path, "%s-%s", check_path, name);
  if (check_rank == 0) remove(path);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Info info;
  OK(MPI_Info_create(&info));
  if (logs != NULL) {
    OK(MPI_Info_set(info, "forebay_cache", "enable"));
    OK(MPI_Info_set(info, "forebay_cache_path", logs));
  }
  MPI_File file;
  OK(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_RDWR, info, &file));
  OK(MPI_Info_free(&info));
  memset(data, 'a' + check_rank, sizeof data);
  for (int i = 0; i < parts; ++i) {
    const MPI_Offset mine = (MPI_Offset)part * (check_size * i + check_rank);
    OK(MPI_File_write_at(file, mine, data, part, MPI_BYTE, MPI_STATUS_IGNORE));
  }
  return file;
}

int main(int argc, char** argv) {
  check_start(argc, argv, "unclosed");
  written("plain", NULL);
  written("cached", argv[1]);
  struct rlimit before;
  CHECK(getrlimit(RLIMIT_FSIZE, &before) == 0);
  if (check_rank == 1) {
    signal(SIGXFSZ, SIG_IGN);
    const struct rlimit small = {(rlim_t)1 << 20, before.rlim_max};
    CHECK(setrlimit(RLIMIT_FSIZE, &small) == 0);
  }
  MPI_File file = written("given-up", argv[1]);
  OK(MPI_File_close(&file));
  CHECK(setrlimit(RLIMIT_FSIZE, &before) == 0);
  MPI_Finalize();
  return 0;
}
