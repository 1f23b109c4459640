/* A program with a wrong hint in many openings, for the tests of what Forebay says: by MPI_Info at
 * open and later; and with two hints that come too late in each. */
#define _GNU_SOURCE
#include "tests/mpi/intercept_check.h"

static void write_interleaved(MPI_File file) {
  char data[8] = "forebay";
  MPI_Datatype one_of_all;
  OK(MPI_Type_create_resized(MPI_BYTE, 0, check_size, &one_of_all));
  OK(MPI_Type_commit(&one_of_all));
  OK(MPI_File_set_view(file, check_rank, MPI_BYTE, one_of_all, "native", MPI_INFO_NULL));
  OK(MPI_File_write_at_all(file, 0, data, 8, MPI_BYTE, MPI_STATUS_IGNORE));
  OK(MPI_Type_free(&one_of_all));
}

int main(int argc, char** argv) {
  MPI_Info info, late;
  check_start(argc, argv, "notices");
  OK(MPI_Info_create(&info));
  OK(MPI_Info_set(info, "cb_nodes", "banana"));
  OK(MPI_Info_set(info, "romio_cb_write", "enable"));
  OK(MPI_Info_create(&late));
  OK(MPI_Info_set(late, "cb_buffer_size", "65536"));
  OK(MPI_Info_set(late, "e10_cache", "enable"));
  for (int i = 0; i < 3; ++i) {
    MPI_File file;
    OK(MPI_File_open(MPI_COMM_WORLD, check_path, MPI_MODE_CREATE | MPI_MODE_RDWR, info, &file));
    OK(MPI_File_set_info(file, info));
    write_interleaved(file);
    OK(MPI_File_set_info(file, late));
    OK(MPI_File_close(&file));
  }
  OK(MPI_Info_free(&late));
  OK(MPI_Info_free(&info));
  return check_finish();
}
