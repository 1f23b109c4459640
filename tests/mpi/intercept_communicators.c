/* Goal: files that are opened one after the other, together, and on communicators that come and go
 * keep apart what their ranks tell each other. Method: each file gets small interleaved pieces, so
 * that data passes between ranks, and is read back by another rank. */
#define _GNU_SOURCE
#include "tests/mpi/intercept_check.h"

enum { pieces = 500 };

static char directory[2048];

/* Opens "DIRECTORY/NAME-number" on `comm`, with pieces of 8 bytes dealt out in turn. */
static MPI_File open_numbered(MPI_Comm comm, int number) {
  char path[2200];
  int rank, size;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  snprintf(path, sizeof path, "%s/communicators-%d.dat", directory, number);
  MPI_File file;
  OK(MPI_File_open(comm, path, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file));
  MPI_Datatype turn, mine;
  MPI_Type_contiguous(8, MPI_BYTE, &turn);
  MPI_Type_create_resized(turn, 0, 8 * size, &mine);
  MPI_Type_commit(&mine);
  OK(MPI_File_set_view(file, 8 * rank, MPI_BYTE, mine, "native", MPI_INFO_NULL));
  MPI_Type_free(&mine);
  MPI_Type_free(&turn);
  return file;
}

static void write_numbered(MPI_File file, int number, int rank) {
  long data[pieces];
  for (int i = 0; i < pieces; ++i) data[i] = 1000000L * number + 1000L * rank + i;
  OK(MPI_File_write_at_all(file, 0, data, (int)sizeof data, MPI_BYTE, MPI_STATUS_IGNORE));
}

static void read_numbered(MPI_File file, int number, int rank) {
  long data[pieces];
  memset(data, 0, sizeof data);
  OK(MPI_File_read_at_all(file, 0, data, (int)sizeof data, MPI_BYTE, MPI_STATUS_IGNORE));
  for (int i = 0; i < pieces; ++i) CHECK(data[i] == 1000000L * number + 1000L * rank + i);
}

static int rank_in(MPI_Comm comm) {
  int rank;
  MPI_Comm_rank(comm, &rank);
  return rank;
}

/* One after the other on one communicator. */
static void reopen(MPI_Comm comm) {
  for (int number = 0; number < 5; ++number) {
    MPI_File file = open_numbered(comm, number);
    write_numbered(file, number, rank_in(comm));
    read_numbered(file, number, rank_in(comm));
    OK(MPI_File_close(&file));
  }
}

/* Several at a time, closed in an order of their own, and more opened in between. */
static void open_together(MPI_Comm comm) {
  MPI_File files[4];
  for (int i = 0; i < 4; ++i) files[i] = open_numbered(comm, 10 + i);
  for (int i = 0; i < 4; ++i) write_numbered(files[i], 10 + i, rank_in(comm));
  OK(MPI_File_close(&files[2]));
  OK(MPI_File_close(&files[0]));
  files[0] = open_numbered(comm, 10);
  files[2] = open_numbered(comm, 12);
  for (int i = 3; i >= 0; --i) read_numbered(files[i], 10 + i, rank_in(comm));
  for (int i = 0; i < 4; ++i) OK(MPI_File_close(&files[i]));
}

/* A communicator that goes while its file is open, and one whose ranks stand the other way round.
 */
static void free_before_close(void) {
  MPI_Comm turned;
  MPI_Comm_split(MPI_COMM_WORLD, 0, -check_rank, &turned);
  const int rank = rank_in(turned);
  MPI_File first = open_numbered(turned, 20);
  MPI_File second = open_numbered(turned, 21);
  write_numbered(first, 20, rank);
  OK(MPI_File_close(&first));
  MPI_Comm_free(&turned);
  write_numbered(second, 21, rank);
  read_numbered(second, 21, rank);
  OK(MPI_File_close(&second));
}

/* A duplicate must not inherit what waits at the original. */
static void open_on_a_duplicate(void) {
  MPI_Comm copy;
  MPI_Comm_dup(MPI_COMM_WORLD, &copy);
  MPI_File original = open_numbered(MPI_COMM_WORLD, 30);
  MPI_File duplicate = open_numbered(copy, 31);
  write_numbered(original, 30, check_rank);
  write_numbered(duplicate, 31, check_rank);
  read_numbered(duplicate, 31, check_rank);
  read_numbered(original, 30, check_rank);
  OK(MPI_File_close(&original));
  OK(MPI_File_close(&duplicate));
  MPI_Comm_free(&copy);
}

/* An open that fails, on a communicator on which others succeed. */
static void fail_in_between(void) {
  MPI_File file;
  FAILS(MPI_ERR_NO_SUCH_FILE, MPI_File_open(MPI_COMM_WORLD, "/no/such/directory/file",
                                            MPI_MODE_RDONLY, MPI_INFO_NULL, &file));
  reopen(MPI_COMM_WORLD);
}

int main(int argc, char** argv) {
  check_start(argc, argv, "communicators");
  snprintf(directory, sizeof directory, "%s", argv[argc - 1]);
  reopen(MPI_COMM_WORLD);
  open_together(MPI_COMM_WORLD);
  if (check_rank == 0) reopen(MPI_COMM_SELF);
  for (int i = 0; i < 3; ++i) free_before_close();
  open_on_a_duplicate();
  fail_in_between();
  return check_finish();
}
