/* A run with known calls for intercept_trace_check.py: two ranks whose views take turns of 8 bytes,
 * moved by each kind of pointer and manner. */
#define _GNU_SOURCE
#include "tests/mpi/intercept_check.h"

int main(int argc, char** argv) {
  static int data[64];
  check_start(argc, argv, "trace");
  MPI_File file = check_open(0), none;
  CHECK(MPI_File_open(MPI_COMM_SELF, "/nowhere/at/all", MPI_MODE_RDONLY, MPI_INFO_NULL, &none) !=
        MPI_SUCCESS);

  /* Blocks of 2 ints, 4 ints apart, 4 of them in 64 bytes. */
  MPI_Datatype blocks, mine;
  OK(MPI_Type_vector(4, 2, 4, MPI_INT, &blocks));
  OK(MPI_Type_create_resized(blocks, 0, 64, &mine));
  OK(MPI_Type_commit(&mine));
  OK(MPI_File_set_view(file, 8 * check_rank, MPI_INT, mine, "native", MPI_INFO_NULL));
  OK(MPI_File_write_all(file, data, 8, MPI_INT, MPI_STATUS_IGNORE));
  OK(MPI_File_write(file, data, 8, MPI_INT, MPI_STATUS_IGNORE));
  OK(MPI_File_seek(file, 2, MPI_SEEK_SET));
  OK(MPI_File_read(file, data, 2, MPI_INT, MPI_STATUS_IGNORE));
  /* Where the pointer stands is known by now; after a nonblocking call the MPI is asked again. */
  OK(MPI_File_write(file, data, 2, MPI_INT, MPI_STATUS_IGNORE));
  MPI_Request request;
  OK(MPI_File_iread(file, data, 2, MPI_INT, &request));
  OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
  OK(MPI_File_read(file, data, 2, MPI_INT, MPI_STATUS_IGNORE));
  OK(MPI_File_read_at(file, 9, data, 1, MPI_INT, MPI_STATUS_IGNORE));
  /* An MPI may give the second type the handle of the first. */
  for (int ints = 1; ints <= 3; ints += 2) {
    MPI_Datatype brief;
    OK(MPI_Type_contiguous(ints, MPI_INT, &brief));
    OK(MPI_Type_commit(&brief));
    OK(MPI_File_write_at(file, 0, data, 1, brief, MPI_STATUS_IGNORE));
    OK(MPI_Type_free(&brief));
  }
  OK(MPI_Type_free(&mine));
  OK(MPI_Type_free(&blocks));

  MPI_Info info;
  OK(MPI_Info_create(&info));
  OK(MPI_Info_set(info, "cb_buffer_size", "65536"));
  OK(MPI_Info_set(info, "no_hint_of_anybody", "1"));
  OK(MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", info));
  OK(MPI_Info_set(info, "cb_buffer_size", "131072"));
  OK(MPI_File_set_info(file, info));
  OK(MPI_Info_free(&info));
  OK(MPI_File_write_at_all(file, 1000 + 100 * check_rank, data, 100, MPI_BYTE, MPI_STATUS_IGNORE));
  OK(MPI_File_iwrite_at(file, 2000 + 10 * check_rank, data, 10, MPI_BYTE, &request));
  OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
  OK(MPI_File_sync(file));
  OK(MPI_File_close(&file));
  return check_finish();
}
