/* A program with a wrong hint in many openings, for the tests of what Forebay says: by MPI_Info at
 * open and later, collectively and alone. */
#define _GNU_SOURCE
#include "tests/mpi/intercept_check.h"

int main(int argc, char** argv) {
  MPI_Info info;
  check_start(argc, argv, "notices");
  OK(MPI_Info_create(&info));
  OK(MPI_Info_set(info, "cb_nodes", "banana"));
  for (int i = 0; i < 3; ++i) {
    MPI_File file;
    OK(MPI_File_open(MPI_COMM_WORLD, check_path, MPI_MODE_CREATE | MPI_MODE_RDWR, info, &file));
    OK(MPI_File_set_info(file, info));
    OK(MPI_File_close(&file));
  }
  OK(MPI_Info_free(&info));
  return check_finish();
}
