/* Goal: a program has as many files open as with the MPI alone, though Forebay needs descriptors
 * and communicators for its own. Method: more files at a time than would go with twice as many of
 * either: a low limit on descriptors, and more than half of what MPICH has communicators. Each file
 * holds its own data in the end. */
#define _GNU_SOURCE
#include <sys/resource.h>
#include <unistd.h>

#include "tests/mpi/intercept_check.h"

static const char* name_of(MPI_Comm comm, int number) {
  static char name[sizeof check_path + 40];
  const int shared = comm == MPI_COMM_WORLD;
  snprintf(name, sizeof name, "%s.%d.%d", check_path, shared ? -1 : check_rank, number);
  return name;
}

/* The least of what the ranks' limits allow. */
static int limit_descriptors(int most) {
  struct rlimit limit;
  CHECK(getrlimit(RLIMIT_NOFILE, &limit) == 0);
  limit.rlim_cur = limit.rlim_max < (rlim_t)most ? limit.rlim_max : (rlim_t)most;
  CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
  int least = (int)limit.rlim_cur;
  OK(MPI_Allreduce(MPI_IN_PLACE, &least, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD));
  return least;
}

/* `count` files at a time, all written and then read. */
static void hold(MPI_Comm comm, int count) {
  int rank;
  MPI_File* files = malloc((size_t)count * sizeof *files);
  CHECK(files != NULL);
  OK(MPI_Comm_rank(comm, &rank));
  for (int i = 0; i < count; ++i) {
    const int value[2] = {i, check_rank};
    OK(MPI_File_open(comm, name_of(comm, i), MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL,
                     &files[i]));
    OK(MPI_File_write_at_all(files[i], 8 * rank, value, 8, MPI_BYTE, MPI_STATUS_IGNORE));
  }
  for (int i = 0; i < count; ++i) {
    int value[2] = {-1, -1};
    OK(MPI_File_read_at_all(files[i], 8 * rank, value, 8, MPI_BYTE, MPI_STATUS_IGNORE));
    CHECK(value[0] == i && value[1] == check_rank);
    OK(MPI_File_close(&files[i]));
    if (rank == 0) CHECK(unlink(name_of(comm, i)) == 0);
  }
  free(files);
}

int main(int argc, char** argv) {
#if defined(OPEN_MPI)
  enum { most = 300 }; /* It has communicators enough, and makes them slowly. */
#else
  enum { most = 1100 }; /* MPICH has 2048. */
#endif
  check_start(argc, argv, "many");
  /* Not all are for files. */
  const int descriptors = limit_descriptors(3 * most);
  const int files = descriptors / 2 < most ? descriptors / 2 : most;
  hold(MPI_COMM_SELF, files);
  hold(MPI_COMM_WORLD, files);
  const int few = limit_descriptors(512);
  hold(MPI_COMM_SELF, few * 3 / 5);
  hold(MPI_COMM_WORLD, few * 3 / 5);
  return check_finish();
}
