/* Goal: every data call of MPI-IO moves the right bytes, tells the right count, and leaves its file
 * pointer where it should.
 * Method: the file is a line of ints; rank r owns every check_size-th block of `block` ints. Each
 * write call writes its blocks with a value that names call, rank and index; a read call of the
 * same kind reads them back. Between the two, ranks read each other's blocks by explicit offsets.
 */
#define _GNU_SOURCE
#include "tests/mpi/intercept_check.h"

enum { block = 257, calls_max = 32 };

static MPI_File file;
static int data[block], back[block];

static int value(int call, int rank, int i) { return (call * 64 + rank) * 1024 + i; }

static void fill(int call) {
  for (int i = 0; i < block; ++i) data[i] = value(call, check_rank, i);
  memset(back, 0xff, sizeof back);
}

/* Block `call` of rank `rank`, as an offset in etypes (ints). */
static MPI_Offset place(int call, int rank) {
  return ((MPI_Offset)call * check_size + rank) * block;
}

static void verify(int call, int rank) {
  for (int i = 0; i < block; ++i) CHECK(back[i] == value(call, rank, i));
}

/* After a write call: what every rank wrote stands in the file. */
static void verify_file(int call) {
  OK(MPI_File_sync(file));
  MPI_Barrier(MPI_COMM_WORLD);
  for (int rank = 0; rank < check_size; ++rank) {
    MPI_Status status;
    memset(back, 0xff, sizeof back);
    OK(MPI_File_read_at(file, place(call, rank), back, block, MPI_INT, &status));
    CHECK(check_count(&status, MPI_INT) == block);
    verify(call, rank);
  }
  memset(back, 0xff, sizeof back);
  MPI_Barrier(MPI_COMM_WORLD);
}

static void check_moved(MPI_Status* status) {
  int elements = -1, cancelled = -1;
  MPI_Count wide = -1;
  CHECK(check_count(status, MPI_INT) == block);
  OK(MPI_Get_elements(status, MPI_INT, &elements));
  CHECK(elements == block);
  OK(MPI_Get_elements_x(status, MPI_INT, &wide));
  CHECK(wide == block);
  OK(MPI_Test_cancelled(status, &cancelled));
  CHECK(cancelled == 0);
}

static void seek_to(int call) { OK(MPI_File_seek(file, place(call, check_rank), MPI_SEEK_SET)); }

static void check_position(int call) {
  MPI_Offset position = -1;
  OK(MPI_File_get_position(file, &position));
  CHECK(position == place(call, check_rank) + block);
}

static void explicit_offsets(void) {
  MPI_Status status;
  MPI_Request request;
  int call = 0, flag = 0;

  fill(call);
  OK(MPI_File_write_at(file, place(call, check_rank), data, block, MPI_INT, &status));
  check_moved(&status);
  verify_file(call);
  OK(MPI_File_read_at(file, place(call, check_rank), back, block, MPI_INT, &status));
  check_moved(&status);
  verify(call, check_rank);

  fill(++call);
  OK(MPI_File_write_at_all(file, place(call, check_rank), data, block, MPI_INT, &status));
  check_moved(&status);
  verify_file(call);
  OK(MPI_File_read_at_all(file, place(call, check_rank), back, block, MPI_INT, &status));
  check_moved(&status);
  verify(call, check_rank);

  fill(++call);
  OK(MPI_File_write_at_all_begin(file, place(call, check_rank), data, block, MPI_INT));
  OK(MPI_File_write_at_all_end(file, data, &status));
  check_moved(&status);
  verify_file(call);
  OK(MPI_File_read_at_all_begin(file, place(call, check_rank), back, block, MPI_INT));
  OK(MPI_File_read_at_all_end(file, back, &status));
  check_moved(&status);
  verify(call, check_rank);

  fill(++call);
  OK(MPI_File_iwrite_at(file, place(call, check_rank), data, block, MPI_INT, &request));
  OK(MPI_Wait(&request, &status));
  CHECK(request == MPI_REQUEST_NULL);
  check_moved(&status);
  verify_file(call);
  OK(MPI_File_iread_at(file, place(call, check_rank), back, block, MPI_INT, &request));
  while (!flag) OK(MPI_Test(&request, &flag, &status));
  check_moved(&status);
  verify(call, check_rank);

  fill(++call);
  OK(MPI_File_iwrite_at_all(file, place(call, check_rank), data, block, MPI_INT, &request));
  OK(MPI_Waitall(1, &request, &status));
  check_moved(&status);
  verify_file(call);
  OK(MPI_File_iread_at_all(file, place(call, check_rank), back, block, MPI_INT, &request));
  int index = -1;
  OK(MPI_Waitany(1, &request, &index, &status));
  CHECK(index == 0);
  check_moved(&status);
  verify(call, check_rank);
}

static void individual_pointers(void) {
  MPI_Status status;
  MPI_Request request;
  int call = 8;

  fill(call);
  seek_to(call);
  OK(MPI_File_write(file, data, block, MPI_INT, &status));
  check_moved(&status);
  check_position(call);
  verify_file(call);
  seek_to(call);
  OK(MPI_File_read(file, back, block, MPI_INT, &status));
  check_moved(&status);
  check_position(call);
  verify(call, check_rank);

  fill(++call);
  seek_to(call);
  OK(MPI_File_write_all(file, data, block, MPI_INT, &status));
  check_moved(&status);
  check_position(call);
  verify_file(call);
  seek_to(call);
  OK(MPI_File_read_all(file, back, block, MPI_INT, &status));
  check_moved(&status);
  check_position(call);
  verify(call, check_rank);

  fill(++call);
  seek_to(call);
  OK(MPI_File_write_all_begin(file, data, block, MPI_INT));
  OK(MPI_File_write_all_end(file, data, &status));
  check_moved(&status);
  check_position(call);
  verify_file(call);
  seek_to(call);
  OK(MPI_File_read_all_begin(file, back, block, MPI_INT));
  OK(MPI_File_read_all_end(file, back, &status));
  check_moved(&status);
  check_position(call);
  verify(call, check_rank);

  fill(++call);
  seek_to(call);
  OK(MPI_File_iwrite(file, data, block, MPI_INT, &request));
  OK(MPI_Wait(&request, &status));
  check_moved(&status);
  check_position(call);
  verify_file(call);
  seek_to(call);
  OK(MPI_File_iread(file, back, block, MPI_INT, &request));
  OK(MPI_Wait(&request, &status));
  check_moved(&status);
  check_position(call);
  verify(call, check_rank);

  fill(++call);
  seek_to(call);
  OK(MPI_File_iwrite_all(file, data, block, MPI_INT, &request));
  OK(MPI_Wait(&request, &status));
  check_moved(&status);
  verify_file(call);
  seek_to(call);
  OK(MPI_File_iread_all(file, back, block, MPI_INT, &request));
  OK(MPI_Wait(&request, &status));
  check_moved(&status);
  check_position(call);
  verify(call, check_rank);
}

/* Ranks meet at the shared pointer in any order: which rank's block is where is not known, but each
 * block is whole, and each rank's is there once. */
static void verify_shared(int call) {
  int seen[64] = {0};
  OK(MPI_File_sync(file));
  MPI_Barrier(MPI_COMM_WORLD);
  for (int slot = 0; slot < check_size; ++slot) {
    OK(MPI_File_read_at(file, place(call, slot), back, block, MPI_INT, MPI_STATUS_IGNORE));
    const int rank = back[0] / 1024 - call * 64;
    CHECK(rank >= 0 && rank < check_size && seen[rank] == 0);
    seen[rank] = 1;
    verify(call, rank);
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

static void check_shared_position(int call) {
  MPI_Offset position = -1;
  MPI_Barrier(MPI_COMM_WORLD);
  OK(MPI_File_get_position_shared(file, &position));
  CHECK(position == place(call + 1, 0));
  MPI_Barrier(MPI_COMM_WORLD);
}

static void shared_pointer(void) {
  MPI_Status status;
  MPI_Request request;
  int call = 16;

  fill(call);
  OK(MPI_File_seek_shared(file, place(call, 0), MPI_SEEK_SET));
  OK(MPI_File_write_shared(file, data, block, MPI_INT, &status));
  check_moved(&status);
  check_shared_position(call);
  verify_shared(call);
  OK(MPI_File_seek_shared(file, -(MPI_Offset)block * check_size, MPI_SEEK_CUR));
  memset(back, 0xff, sizeof back);
  OK(MPI_File_read_shared(file, back, block, MPI_INT, &status));
  check_moved(&status);
  verify(call, back[0] / 1024 - call * 64);
  check_shared_position(call);

  fill(++call);
  OK(MPI_File_iwrite_shared(file, data, block, MPI_INT, &request));
  OK(MPI_Wait(&request, &status));
  check_moved(&status);
  check_shared_position(call);
  verify_shared(call);
  OK(MPI_File_seek_shared(file, place(call, 0), MPI_SEEK_SET));
  memset(back, 0xff, sizeof back);
  OK(MPI_File_iread_shared(file, back, block, MPI_INT, &request));
  OK(MPI_Wait(&request, &status));
  check_moved(&status);
  verify(call, back[0] / 1024 - call * 64);
  check_shared_position(call);

  fill(++call);
  OK(MPI_File_write_ordered(file, data, block, MPI_INT, &status));
  check_moved(&status);
  check_shared_position(call);
  verify_file(call);
  OK(MPI_File_seek_shared(file, place(call, 0), MPI_SEEK_SET));
  OK(MPI_File_read_ordered(file, back, block, MPI_INT, &status));
  check_moved(&status);
  verify(call, check_rank);
  check_shared_position(call);

  fill(++call);
  OK(MPI_File_write_ordered_begin(file, data, block, MPI_INT));
  OK(MPI_File_write_ordered_end(file, data, &status));
  check_moved(&status);
  check_shared_position(call);
  verify_file(call);
  OK(MPI_File_seek_shared(file, place(call, 0), MPI_SEEK_SET));
  OK(MPI_File_read_ordered_begin(file, back, block, MPI_INT));
  OK(MPI_File_read_ordered_end(file, back, &status));
  check_moved(&status);
  verify(call, check_rank);
  check_shared_position(call);
}

/* Reads stop at the end of the file and say how far they came. */
static void end_of_file(void) {
  MPI_Status status;
  MPI_Offset size = -1;
  OK(MPI_File_set_size(file, 10 * (MPI_Offset)sizeof(int)));
  OK(MPI_File_get_size(file, &size));
  CHECK(size == 10 * (MPI_Offset)sizeof(int));
  OK(MPI_File_read_at_all(file, 4, back, block, MPI_INT, &status));
  CHECK(check_count(&status, MPI_INT) == 6);
  OK(MPI_File_read_at(file, 9, back, block, MPI_INT, &status));
  CHECK(check_count(&status, MPI_INT) == 1);
  OK(MPI_File_read_at(file, 4000, back, block, MPI_INT, &status));
  CHECK(check_count(&status, MPI_INT) == 0);
}

/* No data is data too. Ranks differ in whether they have any. */
static void zero_counts(void) {
  MPI_Status status;
  const int count = check_rank % 2 == 0 ? block : 0;
  fill(24);
  OK(MPI_File_write_at_all(file, place(24, check_rank), data, count, MPI_INT, &status));
  CHECK(check_count(&status, MPI_INT) == count);
  OK(MPI_File_read_at_all(file, place(24, check_rank), back, count, MPI_INT, &status));
  CHECK(check_count(&status, MPI_INT) == count);
  if (count > 0) verify(24, check_rank);
  OK(MPI_File_write_at_all(file, 0, NULL, 0, MPI_INT, &status));
  CHECK(check_count(&status, MPI_INT) == 0);
  OK(MPI_File_read_at(file, 0, NULL, 0, MPI_INT, &status));
  CHECK(check_count(&status, MPI_INT) == 0);
}

int main(int argc, char** argv) {
  check_start(argc, argv, "data");
  CHECK(check_size <= 64);
  file = check_open(0);
  OK(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
  explicit_offsets();
  individual_pointers();
  shared_pointer();
  zero_counts();
  end_of_file();
  OK(MPI_File_close(&file));
  CHECK(file == MPI_FILE_NULL);
  return check_finish();
}
