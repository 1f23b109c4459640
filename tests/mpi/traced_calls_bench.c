/* What tracing costs a call of MPI-IO: the same call of one rank as a program makes it, and
 * straight to the MPI's library, in turns, by one opening: of two, one can be slower by half of
 * what tracing takes, for where its memory lies. Calls to libc below are traced in both. Prints a
 * line a call, medians over the turns: name, nanoseconds straight to the library, nanoseconds that
 * tracing adds.
 *
 * usage: forebay trace -- mpiexec -n 1 traced_calls_bench DIRECTORY */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* A call has three events, and what a thread traces is spilled 4096 events at a time: a turn is to
 * have its share of that, neither none nor twice as much. */
enum { turns = 15, calls_in_a_row = 20000 };

static MPI_File file;
static char bytes[8];

static double now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return 1e9 * (double)now.tv_sec + (double)now.tv_nsec;
}

static int ascending(const void* a, const void* b) {
  const double left = *(const double*)a, right = *(const double*)b;
  return (left > right) - (left < right);
}

static double median(double* values) {
  qsort(values, turns, sizeof *values, ascending);
  return values[turns / 2];
}

static double ns_a_call(void (*call)(int)) {
  const double start = now_ns();
  for (int i = 0; i < calls_in_a_row; ++i) call(i);
  return (now_ns() - start) / calls_in_a_row;
}

static void compare(const char* name, void (*through)(int), void (*past)(int)) {
  double alone[turns], added[turns];
  for (int turn = 0; turn < turns; ++turn) {
    const double with = ns_a_call(through);
    alone[turn] = ns_a_call(past);
    added[turn] = with - alone[turn];
  }
  printf("%s\t%.0f\t%.0f\n", name, median(alone), median(added));
}

static void* mpi_library;

/* Of the MPI itself: tracing has both names that a call has (MPI_, PMPI_). */
static void* straight(const char* name) {
  void* found = dlsym(mpi_library, name);
  if (found == NULL) {
    fprintf(stderr, "the MPI's library has no %s\n", name);
    exit(1);
  }
  return found;
}

typedef int (*at_offset)(MPI_File, MPI_Offset, void*, int, MPI_Datatype, MPI_Status*);
typedef int (*by_pointer)(MPI_File, void*, int, MPI_Datatype, MPI_Status*);
typedef int (*to_place)(MPI_File, MPI_Offset, int);
static at_offset straight_write_at, straight_read_at;
static by_pointer straight_write;
static to_place straight_seek;

static void write_at(int i) {
  MPI_File_write_at(file, 8 * i, bytes, 8, MPI_BYTE, MPI_STATUS_IGNORE);
}
static void plain_write_at(int i) {
  straight_write_at(file, 8 * i, bytes, 8, MPI_BYTE, MPI_STATUS_IGNORE);
}
static void read_at(int i) { MPI_File_read_at(file, 8 * i, bytes, 8, MPI_BYTE, MPI_STATUS_IGNORE); }
static void plain_read_at(int i) {
  straight_read_at(file, 8 * i, bytes, 8, MPI_BYTE, MPI_STATUS_IGNORE);
}
static void write_on(int i) {
  (void)i;
  MPI_File_write(file, bytes, 8, MPI_BYTE, MPI_STATUS_IGNORE);
}
static void plain_write_on(int i) {
  (void)i;
  straight_write(file, bytes, 8, MPI_BYTE, MPI_STATUS_IGNORE);
}
static void seek(int i) { MPI_File_seek(file, 8 * i, MPI_SEEK_SET); }
static void plain_seek(int i) { straight_seek(file, 8 * i, MPI_SEEK_SET); }

static void find_the_library(void) {
  Dl_info place;
  if (dladdr(dlsym(RTLD_DEFAULT, "MPI_Comm_rank"), &place) != 0) {
    mpi_library = dlopen(place.dli_fname, RTLD_NOW | RTLD_NOLOAD);
  }
  straight_write_at = (at_offset)straight("PMPI_File_write_at");
  straight_read_at = (at_offset)straight("PMPI_File_read_at");
  straight_write = (by_pointer)straight("PMPI_File_write");
  straight_seek = (to_place)straight("PMPI_File_seek");
}

int main(int argc, char** argv) {
  if (argc != 2) {
    fputs("usage: traced_calls_bench DIRECTORY\n", stderr);
    return 2;
  }
  MPI_Init(&argc, &argv);
  find_the_library();
  char name[4096];
  snprintf(name, sizeof name, "%s/traced-calls", argv[1]);
  if (MPI_File_open(MPI_COMM_SELF, name, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file) !=
      MPI_SUCCESS) {
    fprintf(stderr, "%s cannot be opened\n", name);
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  compare("MPI_File_write_at", write_at, plain_write_at);
  compare("MPI_File_read_at", read_at, plain_read_at);
  compare("MPI_File_write", write_on, plain_write_on);
  compare("MPI_File_seek", seek, plain_seek);
  /* Every second 8 bytes of the file. */
  MPI_Datatype blocks;
  MPI_Type_vector(1024, 8, 16, MPI_BYTE, &blocks);
  MPI_Type_commit(&blocks);
  MPI_File_set_view(file, 0, MPI_BYTE, blocks, "native", MPI_INFO_NULL);
  compare("MPI_File_write_at, view with holes", write_at, plain_write_at);
  compare("MPI_File_write, view with holes", write_on, plain_write_on);
  MPI_Type_free(&blocks);
  MPI_File_close(&file);
  remove(name);
  MPI_Finalize();
  return 0;
}
