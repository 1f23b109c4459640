/* Goal: what ThreadSanitizer is told to overlook in MPICH leaves it able to see Forebay's accesses.
 * Method: a thread reads from a file by Forebay, and the main thread looks at what was read without
 * any order between the two, which must be reported. Not for a run without ThreadSanitizer. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "tests/mpi/intercept_check.h"

static MPI_File file;
static int in;
static atomic_int is_over;

static void* read_in(void* unused) {
  (void)unused;
  OK(MPI_File_read_at(file, 0, &in, 1, MPI_INT, MPI_STATUS_IGNORE));
  atomic_store_explicit(&is_over, 1, memory_order_relaxed); /* Which orders nothing else. */
  return NULL;
}

int main(int argc, char** argv) {
  const int out = 17;
  int provided = MPI_THREAD_SINGLE;
  MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &provided);
  check_arguments(argc, argv, "unordered");
  CHECK(provided == MPI_THREAD_MULTIPLE);
  file = check_open(0);
  OK(MPI_File_write_at(file, 0, &out, 1, MPI_INT, MPI_STATUS_IGNORE));
  pthread_t reader;
  CHECK(pthread_create(&reader, NULL, read_in, NULL) == 0);
  while (!atomic_load_explicit(&is_over, memory_order_relaxed)) sched_yield();
  CHECK(in == out);
  pthread_join(reader, NULL);
  OK(MPI_File_close(&file));
  return check_finish();
}
