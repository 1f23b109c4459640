/* Goal: where ranks give different arguments to a call for which the standard wants equal ones, or
 * hints to only some of them, each is told so or none is harmed, and nobody waits for ever.
 * Method: each collective call on the state of a file, with one rank that differs from the others,
 * then a write by all that shows that they are still in step; a hang is caught by ctest's timeout.
 */
#define _GNU_SOURCE
#include "tests/mpi/intercept_check.h"

static MPI_File file;

static int differs(void) { return check_rank == check_size - 1; }

static void verify_in_step(int value) {
  int seen = 0;
  OK(MPI_File_write_at_all(file, 4 * check_rank, &value, 4, MPI_BYTE, MPI_STATUS_IGNORE));
  OK(MPI_File_sync(file));
  MPI_Barrier(MPI_COMM_WORLD);
  OK(MPI_File_read_at_all(file, 4 * ((check_rank + 1) % check_size), &seen, 4, MPI_BYTE,
                          MPI_STATUS_IGNORE));
  CHECK(seen == value);
  MPI_Barrier(MPI_COMM_WORLD);
}

static void atomicity(void) {
  int flag = -1;
  FAILS(MPI_ERR_ARG, MPI_File_set_atomicity(file, differs()));
  OK(MPI_File_get_atomicity(file, &flag));
  CHECK(flag == 0);
  verify_in_step(1);
}

static void sizes(void) {
  MPI_Offset size = -1;
  OK(MPI_File_set_size(file, 100));
  FAILS(MPI_ERR_ARG, MPI_File_set_size(file, differs() ? 200 : 300));
  FAILS(MPI_ERR_ARG, MPI_File_set_size(file, differs() ? -1 : 300));
  FAILS(MPI_ERR_ARG, MPI_File_preallocate(file, differs() ? 200 : 300));
  OK(MPI_File_get_size(file, &size));
  CHECK(size == 100);
  MPI_Barrier(MPI_COMM_WORLD);
  verify_in_step(2);
}

static void hints(void) {
  MPI_Info info;
  OK(MPI_Info_create(&info));
  OK(MPI_Info_set(info, "cb_buffer_size", "65536"));
  MPI_Info mine = differs() ? info : MPI_INFO_NULL, others = differs() ? MPI_INFO_NULL : info;
  OK(MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", mine));
  verify_in_step(3);
  OK(MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", others));
  verify_in_step(4);
  /* Not even the null handle of one rank. */
  if (differs()) {
    FAILS(MPI_ERR_INFO, MPI_File_set_info(file, MPI_INFO_NULL));
  } else {
    OK(MPI_File_set_info(file, info));
  }
  verify_in_step(5);
  /* A value of its own. */
  OK(MPI_Info_set(info, "cb_buffer_size", differs() ? "131072" : "262144"));
  OK(MPI_File_set_info(file, info));
  OK(MPI_Info_set(info, "cb_nodes", "1"));
  if (differs()) OK(MPI_Info_delete(info, "cb_nodes"));
  OK(MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", info));
  OK(MPI_Info_free(&info));
  verify_in_step(6);
}

int main(int argc, char** argv) {
  check_start(argc, argv, "disagreement");
  CHECK(check_size > 1);
  file = check_open(0);
  atomicity();
  sizes();
  hints();
  OK(MPI_File_close(&file));
  return check_finish();
}
