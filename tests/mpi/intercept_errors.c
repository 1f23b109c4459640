/* Goal: wrong arguments are told by the right error class, and a collective call in which only one
 * rank is wrong leaves nobody waiting and everybody else's data in place.
 * Method: each kind of wrong argument on one rank of a collective call, then on independent ones; a
 * hang is caught by ctest's timeout. */
#define _GNU_SOURCE
#include "tests/mpi/intercept_check.h"

static MPI_File file;

/* All ranks but the last are right. */
static int wrong(void) { return check_rank == check_size - 1; }

static void verify_others(int value) {
  OK(MPI_File_sync(file));
  MPI_Barrier(MPI_COMM_WORLD);
  for (int rank = 0; rank < check_size - 1; ++rank) {
    int seen = 0;
    OK(MPI_File_read_at(file, 4 * rank, &seen, 4, MPI_BYTE, MPI_STATUS_IGNORE));
    CHECK(seen == value);
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

static void collective_calls(void) {
  MPI_Datatype uncommitted;
  int value = 1;
  OK(MPI_Type_contiguous(4, MPI_BYTE, &uncommitted));
  if (wrong()) {
    FAILS(MPI_ERR_COUNT, MPI_File_write_at_all(file, 0, &value, -1, MPI_BYTE, MPI_STATUS_IGNORE));
  } else {
    OK(MPI_File_write_at_all(file, 4 * check_rank, &value, 4, MPI_BYTE, MPI_STATUS_IGNORE));
  }
  verify_others(value++);
  if (wrong()) {
    FAILS(MPI_ERR_ARG, MPI_File_write_at_all(file, -1, &value, 4, MPI_BYTE, MPI_STATUS_IGNORE));
  } else {
    OK(MPI_File_write_at_all(file, 4 * check_rank, &value, 4, MPI_BYTE, MPI_STATUS_IGNORE));
  }
  verify_others(value++);
  if (wrong()) {
    FAILS(MPI_ERR_TYPE,
          MPI_File_write_at_all(file, 0, &value, 1, MPI_DATATYPE_NULL, MPI_STATUS_IGNORE));
  } else {
    OK(MPI_File_write_at_all(file, 4 * check_rank, &value, 4, MPI_BYTE, MPI_STATUS_IGNORE));
  }
  verify_others(value++);
  if (wrong()) {
    FAILS(MPI_ERR_BUFFER, MPI_File_write_at_all(file, 0, NULL, 4, MPI_BYTE, MPI_STATUS_IGNORE));
  } else {
    OK(MPI_File_write_at_all(file, 4 * check_rank, &value, 4, MPI_BYTE, MPI_STATUS_IGNORE));
  }
  verify_others(value++);
  OK(MPI_File_seek(file, 4 * check_rank, MPI_SEEK_SET));
  if (wrong()) {
    FAILS(MPI_ERR_TYPE, MPI_File_write_all(file, &value, 1, uncommitted, MPI_STATUS_IGNORE));
  } else {
    OK(MPI_File_write_all(file, &value, 4, MPI_BYTE, MPI_STATUS_IGNORE));
  }
  verify_others(value++);
  OK(MPI_File_seek_shared(file, 0, MPI_SEEK_SET));
  if (wrong()) {
    FAILS(MPI_ERR_COUNT, MPI_File_write_ordered(file, &value, -4, MPI_BYTE, MPI_STATUS_IGNORE));
  } else {
    OK(MPI_File_write_ordered(file, &value, 4, MPI_BYTE, MPI_STATUS_IGNORE));
  }
  verify_others(value++);
  /* A wrong view on one rank leaves every rank with the view it had, and tells every rank. */
  FAILS(MPI_ERR_ARG,
        MPI_File_set_view(file, 0, MPI_INT, wrong() ? MPI_BYTE : MPI_INT, "native", MPI_INFO_NULL));
  MPI_Offset bytes = -1;
  OK(MPI_File_get_byte_offset(file, 3, &bytes));
  CHECK(bytes == 3);
  OK(MPI_Type_free(&uncommitted));
}

static void independent_calls(void) {
  MPI_Datatype uncommitted;
  MPI_Request request;
  int value = 0;
  OK(MPI_Type_contiguous(4, MPI_BYTE, &uncommitted));
  FAILS(MPI_ERR_COUNT, MPI_File_read_at(file, 0, &value, -1, MPI_BYTE, MPI_STATUS_IGNORE));
  FAILS(MPI_ERR_ARG, MPI_File_read_at(file, -1, &value, 1, MPI_BYTE, MPI_STATUS_IGNORE));
  FAILS(MPI_ERR_TYPE, MPI_File_read(file, &value, 1, MPI_DATATYPE_NULL, MPI_STATUS_IGNORE));
  FAILS(MPI_ERR_TYPE, MPI_File_write(file, &value, 1, uncommitted, MPI_STATUS_IGNORE));
  FAILS(MPI_ERR_COUNT, MPI_File_write_shared(file, &value, -1, MPI_BYTE, MPI_STATUS_IGNORE));
  FAILS(MPI_ERR_COUNT, MPI_File_iwrite_at(file, 0, &value, -1, MPI_BYTE, &request));
  OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
  FAILS(MPI_ERR_ARG, MPI_File_get_byte_offset(file, -1, &(MPI_Offset){0}));
  FAILS(MPI_ERR_UNSUPPORTED_DATAREP,
        MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "no such thing", MPI_INFO_NULL));
  OK(MPI_Type_free(&uncommitted));
}

/* A null buffer is wrong only where there is something to move, and where the type does not say
 * where that lies: MPI_BOTTOM may be null. */
static void null_buffers(void) {
  MPI_Datatype absolute, vector;
  MPI_Aint address;
  int value = 7, back = 0;
  OK(MPI_Type_vector(2, 1, 2, MPI_BYTE, &vector));
  OK(MPI_Type_commit(&vector));
  FAILS(MPI_ERR_BUFFER, MPI_File_write_at(file, 0, NULL, 4, MPI_BYTE, MPI_STATUS_IGNORE));
  FAILS(MPI_ERR_BUFFER, MPI_File_read_at(file, 0, NULL, 4, MPI_BYTE, MPI_STATUS_IGNORE));
  FAILS(MPI_ERR_BUFFER, MPI_File_read_at(file, 0, NULL, 1, vector, MPI_STATUS_IGNORE));
  FAILS(MPI_ERR_BUFFER, MPI_File_read_at_all(file, 0, NULL, 4, MPI_BYTE, MPI_STATUS_IGNORE));
  OK(MPI_File_write_at(file, 0, NULL, 0, MPI_BYTE, MPI_STATUS_IGNORE));
  OK(MPI_File_write_at_all(file, 0, NULL, 0, MPI_BYTE, MPI_STATUS_IGNORE));
  OK(MPI_Get_address(&value, &address));
  OK(MPI_Type_create_hindexed_block(1, 4, &address, MPI_BYTE, &absolute));
  OK(MPI_Type_commit(&absolute));
  OK(MPI_File_write_at(file, 4 * check_rank, MPI_BOTTOM, 1, absolute, MPI_STATUS_IGNORE));
  OK(MPI_File_read_at(file, 4 * check_rank, &back, 4, MPI_BYTE, MPI_STATUS_IGNORE));
  CHECK(back == 7);
  OK(MPI_Type_free(&absolute));
  OK(MPI_Type_free(&vector));
}

/* An end needs its own begin, and one split collective at a time is under way. */
static void split_collectives(void) {
  int value = 5, other = 6;
  MPI_Status status;
  OK(MPI_File_write_at_all_begin(file, 4 * check_rank, &value, 4, MPI_BYTE));
  FAILS(MPI_ERR_IO, MPI_File_write_at_all_begin(file, 0, &value, 4, MPI_BYTE));
  FAILS(MPI_ERR_IO, MPI_File_write_all_end(file, &value, &status));
  FAILS(MPI_ERR_IO, MPI_File_read_at_all_end(file, &value, &status));
  FAILS(MPI_ERR_IO, MPI_File_write_at_all_end(file, &other, &status));
  FAILS(MPI_ERR_IO, MPI_File_write_at_all(file, 0, &value, 4, MPI_BYTE, &status));
  OK(MPI_File_write_at_all_end(file, &value, &status));
  CHECK(check_count(&status, MPI_BYTE) == 4);
  FAILS(MPI_ERR_IO, MPI_File_write_at_all_end(file, &value, &status));
  verify_others(value);
}

int main(int argc, char** argv) {
  check_start(argc, argv, "errors");
  file = check_open(0);
  collective_calls();
  independent_calls();
  null_buffers();
  split_collectives();
  OK(MPI_File_close(&file));
  return check_finish();
}
